package server

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // known, so that small ones can be shown
	"image/jpeg"
	"image/png"
	"math"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // as gif
)

// The largest picture that is given to a model, and the largest that is scaled down to
// that. A picture is a guest's bytes: thirty of them claim
// 65,535 × 65,535 pixels, and 100 KiB of scans, which each go over the whole
// picture, keep a JPEG decoder busy for ten seconds.
const (
	maxPictureBytes = 1 << 20
	maxPictureSide  = 2000
	// maxScaleBytes and maxScalePixels bound what is decoded: at worst, a
	// progressive JPEG of four components, that takes 200 MiB, and one at a
	// time is.
	maxScaleBytes  = 16 << 20
	maxScalePixels = 8 << 20
	// maxScans is far more than the ten that encoders make.
	maxScans = 100
)

// errNoPicture says that bytes are no picture of a kind that models see.
var errNoPicture = errors.New("it is not a PNG, JPEG, GIF or WebP picture")

// pictures makes guests' pictures fit for models.
type pictures struct{ scaling sync.Mutex }

// picture is a picture as a model gets it.
type picture struct {
	data          []byte
	mime          string
	width, height int
	// note says, where it was scaled down, from what.
	note string
}

func (p picture) content() *mcp.ImageContent {
	return &mcp.ImageContent{Data: p.data, MIMEType: p.mime}
}

// fit gives the picture as it is where it is small enough, and else scaled down
// and encoded anew. Its error says why it can only be had as a file.
func (p *pictures) fit(data []byte) (picture, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width <= 0 || config.Height <= 0 {
		return picture{}, errNoPicture
	}
	was := fmt.Sprintf("%d × %d pixels, %s", config.Width, config.Height, size(int64(len(data))))
	if len(data) <= maxPictureBytes && max(config.Width, config.Height) <= maxPictureSide {
		return picture{data: data, mime: "image/" + format, width: config.Width, height: config.Height}, nil
	}
	switch {
	case format != "png" && format != "jpeg":
		return picture{}, fmt.Errorf("it is too large to be shown (%s), and a %s is not scaled down", was, format)
	case tooLarge(data, config):
		return picture{}, fmt.Errorf("it is too large to be shown (%s), also to be scaled down", was)
	case tooManyScans(data, format):
		return picture{}, fmt.Errorf("it is too large to be shown (%s), and has too many scans to be scaled down", was)
	}
	p.scaling.Lock()
	defer p.scaling.Unlock()
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("it is too large to be shown (%s), and cannot be scaled down: %w", was, err)
	}
	small, err := shrink(decoded, format)
	if err != nil {
		return picture{}, fmt.Errorf("it is too large to be shown (%s), and cannot be scaled down: %w", was, err)
	}
	small.note = "scaled down from " + was
	return small, nil
}

// DecodePicture decodes a guest's PNG, JPEG, GIF or WebP, within the same bounds,
// and makes its longer side no longer than side pixels.
func DecodePicture(data []byte, side int) (image.Image, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width <= 0 || config.Height <= 0 {
		return nil, errNoPicture
	}
	if tooLarge(data, config) || tooManyScans(data, format) {
		return nil, fmt.Errorf("it is too large to be shown (%d × %d pixels, %s)", config.Width, config.Height, size(int64(len(data))))
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return scale(decoded, float64(side)), nil
}

func tooLarge(data []byte, config image.Config) bool {
	return len(data) > maxScaleBytes || int64(config.Width)*int64(config.Height) > maxScalePixels
}

func tooManyScans(data []byte, format string) bool {
	return format == "jpeg" && bytes.Count(data, startOfScan) > maxScans
}

// startOfScan is a JPEG's marker, which nothing else in its scans can look like.
var startOfScan = []byte{0xff, 0xda}

// shrink makes a picture smaller until its sides and bytes are small enough. A
// PNG stays one where that is enough; else it becomes a JPEG on white.
func shrink(img image.Image, format string) (picture, error) {
	side := float64(maxPictureSide)
	img = scale(img, side)
	for ; side >= 100; side *= 0.7 {
		img = scale(img, side)
		var out bytes.Buffer
		err := errors.ErrUnsupported
		if format == "png" {
			err = png.Encode(&out, img)
			if err == nil && out.Len() > maxPictureBytes {
				format, img = "jpeg", onWhite(img)
				out.Reset()
			}
		}
		if format == "jpeg" {
			err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 85})
		}
		if err != nil {
			return picture{}, err
		}
		if out.Len() <= maxPictureBytes {
			size := img.Bounds()
			return picture{data: out.Bytes(), mime: "image/" + format, width: size.Dx(), height: size.Dy()}, nil
		}
		side = min(side, float64(max(img.Bounds().Dx(), img.Bounds().Dy())))
	}
	return picture{}, errors.New("it does not become small enough") // no JPEG of 100 × 100 has a MiB
}

// scale makes a picture's longer side no longer than side. It halves first:
// each pixel is made of the four nearest, so thin lines would be lost in one
// larger step, and the better scalers of the package take 32 bytes a pixel.
func scale(picture image.Image, side float64) image.Image {
	for {
		from := picture.Bounds()
		factor := side / float64(max(from.Dx(), from.Dy()))
		if factor >= 1 {
			return picture
		}
		factor = max(factor, 0.5)
		to := image.NewRGBA(image.Rect(0, 0, scaled(from.Dx(), factor), scaled(from.Dy(), factor)))
		draw.ApproxBiLinear.Scale(to, to.Bounds(), picture, from, draw.Src, nil)
		picture = to
	}
}

func scaled(side int, factor float64) int { return max(1, int(math.Round(float64(side)*factor))) }

func onWhite(picture image.Image) image.Image {
	to := image.NewRGBA(picture.Bounds())
	draw.Draw(to, to.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(to, to.Bounds(), picture, picture.Bounds().Min, draw.Over)
	return to
}
