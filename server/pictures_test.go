package server

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// noisy is a picture that does not compress, half transparent.
func noisy(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(m.Pix)
	return m
}

func blank(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = 0xff
	}
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gifOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := gif.Encode(&out, image.NewPaletted(image.Rect(0, 0, width, height), palette.Plan9), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPicturesFit(t *testing.T) {
	for _, row := range []struct {
		name          string
		data          []byte
		mime          string
		width, height int
		note          string
	}{
		{"small PNG", pngOf(t, noisy(300, 200)), "image/png", 300, 200, ""},
		{"small JPEG", jpegOf(t, blank(300, 200)), "image/jpeg", 300, 200, ""},
		{"small GIF", gifOf(t, 300, 200), "image/gif", 300, 200, ""},
		{"wide PNG", pngOf(t, blank(4000, 30)), "image/png", 2000, 15, "scaled down from 4000 × 30 pixels"},
		{"thin PNG", pngOf(t, blank(1, 20_000)), "image/png", 1, 2000, "scaled down from 1 × 20000 pixels"},
		{"large PNG", pngOf(t, blank(2500, 2500)), "image/png", 2000, 2000, "scaled down"},
		{"large JPEG", jpegOf(t, blank(2500, 2500)), "image/jpeg", 2000, 2000, "scaled down"},
		{"PNG of many bytes", pngOf(t, noisy(1000, 1000)), "image/jpeg", 1000, 1000, "scaled down from 1000 × 1000 pixels, 3.8 MiB"},
		{"JPEG of many scans", manyScans(maxScans), "image/jpeg", 2000, 2000, "scaled down"},
		{"JPEG of many bytes", jpegOf(t, noisy(2500, 2500)), "image/jpeg", 0, 0, "scaled down"},
	} {
		var p pictures
		got, err := p.fit(row.data)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(got.data))
		if err != nil || "image/"+format != got.mime || config.Width != got.width || config.Height != got.height {
			t.Errorf("%s: says %s of %d × %d, is %s of %d × %d, %v", row.name, got.mime, got.width, got.height, format, config.Width, config.Height, err)
		}
		if len(got.data) > maxPictureBytes || max(got.width, got.height) > maxPictureSide {
			t.Errorf("%s: %d bytes, %d × %d are too large", row.name, len(got.data), got.width, got.height)
		}
		if got.mime != row.mime || row.width > 0 && (got.width != row.width || got.height != row.height) || !strings.HasPrefix(got.note, row.note) {
			t.Errorf("%s: got %s of %d × %d, %q", row.name, got.mime, got.width, got.height, got.note)
		}
		if row.note == "" && !bytes.Equal(got.data, row.data) {
			t.Errorf("%s: it was changed", row.name)
		}
		if _, _, err := image.Decode(bytes.NewReader(got.data)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestScalingKeepsThePicture(t *testing.T) {
	// Black above, red below, transparent at the right.
	m := image.NewNRGBA(image.Rect(0, 0, 4000, 1000))
	for y := range 1000 {
		for x := range 3000 {
			m.SetNRGBA(x, y, color.NRGBA{byte(y / 500 * 255), 0, 0, 255})
		}
	}
	var p pictures
	got, err := p.fit(pngOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	small, err := png.Decode(bytes.NewReader(got.data))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[image.Point]color.NRGBA{
		{10, 10}: {0, 0, 0, 255}, {10, 490}: {255, 0, 0, 255}, {1990, 250}: {0, 0, 0, 0},
	} {
		if c := color.NRGBAModel.Convert(small.At(at.X, at.Y)); c != want {
			t.Errorf("at %v it is %v, want %v", at, c, want)
		}
	}
}

func TestPicturesThatAreNotShown(t *testing.T) {
	whole := jpegOf(t, blank(2500, 2500))
	for _, row := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "it is not a PNG"},
		{"text", []byte("hello"), "it is not a PNG"},
		{"a header's begin", pngOf(t, blank(3, 3))[:20], "it is not a PNG"},
		{"a large GIF", gifOf(t, 2500, 10), "a gif is not scaled down"},
		{"a bomb", pngThatClaims(50_000, 50_000), "also to be scaled down"},
		{"a bomb of no height", pngThatClaims(50_000, 0), "it is not a PNG"},
		{"too many pixels", pngThatClaims(4000, 3000), "also to be scaled down"},
		{"too many bytes", append(pngOf(t, blank(2500, 10)), make([]byte, maxScaleBytes)...), "also to be scaled down"},
		{"a JPEG that is made to last", manyScans(maxScans + 1), "too many scans to be scaled down"},
		{"half a JPEG", whole[:len(whole)/2], "cannot be scaled down"},
		{"a PNG without a picture", pngThatClaims(2500, 10), "cannot be scaled down"},
	} {
		var p pictures
		got, err := p.fit(row.data)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %d bytes, %v, want an error that says %q", row.name, len(got.data), err, row.want)
		}
	}
}

// pngThatClaims is a PNG's header and no picture.
func pngThatClaims(width, height uint32) []byte {
	ihdr := append([]byte("IHDR"), 0, 0, 0, 0, 0, 0, 0, 0, 8, 6, 0, 0, 0)
	binary.BigEndian.PutUint32(ihdr[4:], width)
	binary.BigEndian.PutUint32(ihdr[8:], height)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(ihdr))
}

// manyScans is a progressive JPEG of 2,896 × 2,896 pixels in which each scan goes
// over all of 131,000 blocks, and says nothing of them in 15 bytes.
func manyScans(scans int) []byte {
	segment := func(marker byte, payload ...byte) []byte {
		return append([]byte{0xff, marker, 0, byte(len(payload) + 2)}, payload...)
	}
	data := []byte{0xff, 0xd8}
	data = append(data, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	data = append(data, segment(0xc2, 8, 2896>>8, 2896&0xff, 2896>>8, 2896&0xff, 1, 1, 0x11, 0)...)
	// AC table 0: the code 0 is a run of 16,384 or more blocks that end here,
	// and 14 bits of further length follow; eight runs are 15 bytes of zeros.
	data = append(data, segment(0xc4, append([]byte{0x10, 1}, append(make([]byte, 15), 0xe0)...)...)...)
	scan := append(segment(0xda, 1, 1, 0, 1, 63, 0), make([]byte, 15)...)
	data = append(data, bytes.Repeat(scan, scans)...)
	return append(data, 0xff, 0xd9)
}

func FuzzPicture(f *testing.F) {
	f.Add(pngOf(f, noisy(3, 3)), false)
	f.Add(jpegOf(f, blank(20, 2)), true)
	f.Add(gifOf(f, 3, 3), false)
	f.Add(pngThatClaims(50_000, 50_000), true)
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X"), false)
	f.Fuzz(func(t *testing.T, data []byte, shrunk bool) {
		config, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err == nil && config.Width*config.Height > 1<<20 {
			return // slow, and refused or cut short like any other
		}
		var p pictures
		if got, err := p.fit(data); err == nil && (len(got.data) > maxPictureBytes || max(got.width, got.height) > maxPictureSide) {
			t.Errorf("%d bytes, %d × %d", len(got.data), got.width, got.height)
		}
		if picture, _, err := image.Decode(bytes.NewReader(data)); shrunk && err == nil && (format == "png" || format == "jpeg") {
			if _, err := shrink(picture, format); err != nil {
				t.Errorf("a picture that was decoded is not encoded: %v", err)
			}
		}
	})
}
