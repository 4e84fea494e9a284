package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"

	"rillbox/cache/egress"
)

const simpleJSON = "application/vnd.pypi.simple.v1+json"

// acceptPage asks an index for JSON (PEP 691), or else for HTML (PEP 503).
const acceptPage = simpleJSON + ", application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

const maxPageFiles = 200_000 // files on one page; the largest known has some 20,000

// page is a project's page of an index, reduced to its wheels and source archives. It is
// immutable.
type page struct {
	project string // normalised
	files   []pageFile
	byName  map[string]int // index into files
	size    int64          // bytes of the page as the index sent it
}

// pageFile is one file of a page.
type pageFile struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython string            `json:"requires-python,omitempty"`
	Yanked         json.RawMessage   `json:"yanked,omitempty"` // a bool or a reason
	UploadTime     string            `json:"upload-time,omitempty"`
	Size           int64             `json:"size,omitempty"`
	CoreMetadata   map[string]string `json:"core-metadata,omitempty"` // its sha256, and only when there is one

	version string
	link    *url.URL // where the file is; nil when refused says why not
	refused string
}

// sha256 is empty when the index gives none.
func (f *pageFile) sha256() string { return f.Hashes["sha256"] }

// parsePage reads a project's page in either form. base is the page's own URL,
// which relative links are relative to.
func parsePage(project string, base *url.URL, contentType string, body []byte) (*page, error) {
	p := &page{project: project, byName: map[string]int{}, size: int64(len(body))}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = ""
	}
	text := bytes.TrimSpace(body)
	switch {
	case strings.HasSuffix(media, "json"), media == "" && bytes.HasPrefix(text, []byte("{")):
		err = p.parseJSON(base, text)
	case strings.HasSuffix(media, "html"), media == "" && bytes.HasPrefix(text, []byte("<")):
		err = p.parseHTML(base, text)
	default:
		err = fmt.Errorf("its content type is %.100q, not that of an index page", contentType)
	}
	if err != nil {
		beginning := strings.ToValidUTF8(strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " "), "\ufffd")
		return nil, fmt.Errorf("%w; what came begins with %q: is it another's answer, such as a network's sign-in page?", err, beginning)
	}
	return p, nil
}

// parseJSON reads a page as PEP 691 and its successors define it.
func (p *page) parseJSON(base *url.URL, body []byte) error {
	var doc struct {
		Meta struct {
			APIVersion string `json:"api-version"`
		} `json:"meta"`
		Files *[]struct {
			pageFile
			// These may hold a boolean instead.
			CoreMetadata     json.RawMessage `json:"core-metadata"`      // PEP 714
			DistInfoMetadata json.RawMessage `json:"dist-info-metadata"` // PEP 658
			RequiresPython   json.RawMessage `json:"requires-python"`    // or null
		} `json:"files"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return fmt.Errorf("parse JSON: %w", err)
	}
	if major, _, _ := strings.Cut(doc.Meta.APIVersion, "."); major != "" && major != "1" {
		return fmt.Errorf("it speaks version %.20q of the index API, and we speak version 1", doc.Meta.APIVersion)
	}
	if doc.Files == nil {
		return fmt.Errorf("it has no list of files")
	}
	if doc.Meta.APIVersion == "" && len(*doc.Files) == 0 {
		return fmt.Errorf("it does not say that it is a page of a package index")
	}
	for _, f := range *doc.Files {
		f.pageFile.CoreMetadata = digestOf(f.CoreMetadata)
		if len(f.pageFile.CoreMetadata) == 0 {
			f.pageFile.CoreMetadata = digestOf(f.DistInfoMetadata)
		}
		_ = json.Unmarshal(f.RequiresPython, &f.pageFile.RequiresPython) // empty unless a string
		if err := p.add(base, f.pageFile); err != nil {
			return err
		}
	}
	return nil
}

// digestOf reads {"sha256": …}. Metadata without a digest can't be verified, and is not
// needed: the wheel has it, too.
func digestOf(raw json.RawMessage) map[string]string {
	var hashes map[string]string
	if json.Unmarshal(raw, &hashes) != nil {
		return nil
	}
	return onlySHA256(hashes)
}

// parseHTML reads a page as PEP 503 and its successors define it.
func (p *page) parseHTML(base *url.URL, body []byte) error {
	tokens := html.NewTokenizer(bytes.NewReader(body))
	known := false // to be an index's page
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			if err := tokens.Err(); err != io.EOF {
				return fmt.Errorf("parse HTML: %w", err)
			}
			if !known {
				return fmt.Errorf("it is HTML, but not a page of a package index")
			}
			return nil
		case html.TextToken: // of a project that has no files, where the index is an old one
			known = known || strings.HasPrefix(strings.ToLower(strings.TrimSpace(string(tokens.Text()))), "links for ")
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			attrs := map[string]string{}
			for _, a := range token.Attr {
				if _, twice := attrs[a.Key]; !twice {
					attrs[a.Key] = a.Val
				}
			}
			known = known || token.Data == "meta" && attrs["name"] == "pypi:repository-version" // PEP 629
			href, linked := attrs["href"]
			switch {
			case !linked:
			case token.Data == "base":
				if ref, err := base.Parse(href); err == nil {
					base = ref
				}
			case token.Data == "a":
				file := anchorFile(href, attrs)
				known = known || strings.HasPrefix(egress.NormalizePython(file.Filename), p.project+"-")
				if err := p.add(base, file); err != nil {
					return err
				}
			}
		}
	}
}

// anchorFile is the file that an anchor of an HTML page names.
func anchorFile(href string, attrs map[string]string) pageFile {
	f := pageFile{URL: href, Hashes: map[string]string{}, RequiresPython: attrs["data-requires-python"]}
	f.UploadTime = attrs["data-upload-time"] // of mirrors; no PEP has it
	if u, err := url.Parse(href); err == nil {
		f.Filename = u.Path[strings.LastIndexByte(u.Path, '/')+1:]
		if algorithm, sum, ok := strings.Cut(u.Fragment, "="); ok {
			f.Hashes[algorithm] = sum
		}
	}
	if reason, yanked := attrs["data-yanked"]; yanked {
		f.Yanked = json.RawMessage("true")
		if reason != "" {
			f.Yanked, _ = json.Marshal(reason) // a string always has JSON
		}
	}
	for _, key := range []string{"data-core-metadata", "data-dist-info-metadata"} {
		if sum, ok := strings.CutPrefix(attrs[key], "sha256="); ok && isSHA256(sum) {
			f.CoreMetadata = map[string]string{"sha256": sum}
			break
		}
	}
	return f
}

// add adds a wheel or source archive of this project; other files are ignored. A page
// could offer wheels of another project, which the policy may deny.
func (p *page) add(base *url.URL, f pageFile) error {
	if len(p.files) >= maxPageFiles {
		return fmt.Errorf("it lists more than %d files", maxPageFiles)
	}
	if _, twice := p.byName[f.Filename]; twice || !isFilename(f.Filename) {
		return nil
	}
	switch {
	case strings.HasSuffix(f.Filename, ".whl"):
		project, version, ok := wheelName(f.Filename)
		if !ok || project != p.project {
			return nil
		}
		f.version = version
		f.link, f.refused = fileLink(base, f.URL)
	case strings.HasSuffix(f.Filename, ".tar.gz"), strings.HasSuffix(f.Filename, ".zip"):
		project, version, ok := sourceName(f.Filename)
		if f.version = version; !ok || project != p.project {
			f.version, f.refused = "", "its name does not tell which version of the project it is"
			break
		}
		f.link, f.refused = fileLink(base, f.URL)
	default:
		return nil
	}
	f.URL = ""
	f.Hashes = onlySHA256(f.Hashes)
	if len(f.Hashes) == 0 && f.refused == "" {
		f.refused = "the index gives no sha256 for it, so that what arrives can't be checked"
	}
	if string(f.Yanked) != "true" && !bytes.HasPrefix(f.Yanked, []byte(`"`)) { // neither that nor a reason (PEP 592)
		f.Yanked = nil
	}
	f.Size = max(f.Size, 0)
	p.byName[f.Filename] = len(p.files)
	p.files = append(p.files, f)
	return nil
}

func onlySHA256(hashes map[string]string) map[string]string {
	sum := strings.ToLower(hashes["sha256"])
	if !isSHA256(sum) {
		return map[string]string{}
	}
	return map[string]string{"sha256": sum}
}

// fileLink resolves a link of a page; refused says why it can't be followed. Package
// egress checks the address.
func fileLink(base *url.URL, ref string) (link *url.URL, refused string) {
	link, err := base.Parse(ref)
	if err != nil {
		return nil, "the index links to what is not a URL"
	}
	if (link.Scheme != "https" && link.Scheme != "http") || link.Host == "" {
		return nil, fmt.Sprintf("the index links to a %.20q URL, and only https is followed", link.Scheme)
	}
	link.Fragment, link.RawFragment = "", ""
	return link, ""
}

// visible reports whether the file is old enough for the policy.
func (f *pageFile) visible(policy egress.Policy, now time.Time) bool {
	if policy.MinReleaseAge <= 0 {
		return true
	}
	uploaded, err := time.Parse(time.RFC3339, f.UploadTime)
	return err == nil && !uploaded.Add(policy.MinReleaseAge).After(now)
}

// render makes the page that a guest gets, its links leading to fileURL.
func (p *page) render(policy egress.Policy, now time.Time, fileURL func(sha256, filename string) string) ([]byte, error) {
	doc := struct {
		Meta struct {
			APIVersion string `json:"api-version"`
		} `json:"meta"`
		Name     string     `json:"name"`
		Versions []string   `json:"versions"`
		Files    []pageFile `json:"files"`
	}{Name: p.project, Versions: []string{}, Files: []pageFile{}}
	doc.Meta.APIVersion = "1.1"
	seen := map[string]bool{}
	for _, f := range p.files {
		if !f.visible(policy, now) {
			continue
		}
		sum := f.sha256()
		if sum == "" {
			sum = noHash
		}
		f.URL = fileURL(sum, f.Filename)
		doc.Files = append(doc.Files, f)
		if isWheel := strings.HasSuffix(f.Filename, ".whl"); isWheel && !seen[f.version] {
			seen[f.version] = true
			doc.Versions = append(doc.Versions, f.version)
		}
	}
	return json.Marshal(doc)
}

// noHash is the digest in the URL of a file for which the index gives none.
const noHash = "no-sha256"

// find returns the file that a URL of ours names, or nil.
func (p *page) find(sum, filename string) *pageFile {
	i, ok := p.byName[filename]
	if !ok {
		return nil
	}
	f := &p.files[i]
	if own := f.sha256(); own != sum && (own != "" || sum != noHash) {
		return nil
	}
	return f
}
