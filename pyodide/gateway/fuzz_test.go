package gateway

import (
	"net/url"
	"strings"
	"testing"

	"rillbox/cache/egress"
)

// FuzzPlannedFile gives the gateway files of install plans: those that it takes
// are named safely, and lead to an origin of the operator's only when that is
// what their URL says.
func FuzzPlannedFile(f *testing.F) {
	f.Add("six", "six-1.17.0-py2.py3-none-any.whl", "https://files.test/six.whl", sumA, "index")
	f.Add("six", "../six.whl", "https://user:secret@index.test/x", sumA, "index")
	f.Add("", "", "", "", "")
	f.Add("six", "six.whl", "http://index.test:80/six.whl", sumA, "url")
	g := newGateway(f, Options{IndexURLs: []string{"http://user:secret@index.test/simple"}, CDN: "https://cdn.test/", Policy: egress.Policy{Deny: []string{"host:denied.test"}}})
	gr := newGrant(g)
	f.Fuzz(func(t *testing.T, name, filename, address, sum, source string) {
		e, err := gr.planned(File{Name: name, Filename: filename, URL: address, SHA256: sum, Source: source})
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if !isFilename(e.Filename) || !isSHA256(e.SHA256) || !isProjectName(e.Name) || strings.Contains(e.URL, "secret@") && !strings.Contains(address, "/secret@") && e.link.User != nil {
			t.Errorf("%q %q %q %q passed as %+v", name, filename, address, sum, e.File)
		}
		if e.route.Home != nil && (source == "url" || e.link.Hostname() != e.route.Home.Hostname()) {
			t.Errorf("%q (%s) is taken for %s", address, source, e.route.Home.Redacted())
		}
		check := g.network.Policy.CheckLink // what a route checks that says nothing else
		if e.route.Host != nil {
			check = e.route.Host
		}
		if host := e.link.Hostname(); strings.EqualFold(host, "denied.test") && check(host) == nil {
			t.Errorf("%q is on a denied host", address)
		}
	})
}

// FuzzWheelURL gives the gateway wheels by URL.
func FuzzWheelURL(f *testing.F) {
	for _, seed := range []string{"https://x.test/" + demoWheel, "https://x.test/" + demoWheel + "#sha256=" + sumA, "http://x.test/" + demoWheel, "file:///" + demoWheel, "https://denied.test/" + demoWheel, "https://u:p@x.test/" + demoWheel, "https://x.test/evil-1.0-py3-none-any.whl", "https:" + demoWheel, "https://x.test/a%2f" + demoWheel} {
		f.Add(url.QueryEscape(seed))
	}
	g := newGateway(f, Options{Policy: egress.Policy{Deny: []string{"evil", "host:denied.test"}}})
	gr := newGrant(g)
	f.Fuzz(func(t *testing.T, escaped string) {
		e, err := gr.wheelAt(escaped)
		if err != nil {
			return
		}
		u := e.link
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || e.route.Home != nil || !isFilename(e.Filename) || e.SHA256 != "" && !isSHA256(e.SHA256) {
			t.Errorf("%q passed as %+v", escaped, e)
		}
		if strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "denied.test") || e.Name == "evil" {
			t.Errorf("%q is denied, and passed", escaped)
		}
	})
}
