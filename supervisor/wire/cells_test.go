package wire

import (
	"errors"
	"strings"
	"testing"
)

// TestCellsFrames: each cell of a session has its own result and bounds, and what
// is left of an earlier one is passed over.
func TestCellsFrames(t *testing.T) {
	value := func(cell, value string) string { return `{"cell":` + cell + `,"type":"result","value":` + value + `}` }
	display := func(cell, text string) string {
		return `{"cell":` + cell + `,"type":"display","data":{"text/plain":"` + text + `"}}`
	}
	stream := ready + strings.Join([]string{
		value("1", "1"),
		// The first cell's result was forged: this is what the cell itself says.
		display("1", "old"), value("1", `"old"`), `{"type":"result","value":"older"}`, `{"cell":-1,"type":"what"}`,
		display("2", "new"), value("2", "2"),
		value("3", `"`+strings.Repeat("x", 300)+`"`),
	}, "\n") + "\n"
	frames := NewFrameReader(strings.NewReader(stream), 100)
	if frame, err := frames.Next(); err != nil || frame.Type != ReadyFrame {
		t.Fatalf("%+v, %v", frame, err)
	}
	if cell := frames.BeginCell(400); cell != 1 {
		t.Fatalf("the first cell is %d", cell)
	}
	if o := ReadCell(frames, nil); o.Err != nil || string(o.Result.Value) != "1" {
		t.Errorf("the first cell: %+v", o)
	}
	frames.BeginCell(400)
	frames.AllowDisplays(100)
	o := ReadCell(frames, nil)
	if o.Err != nil || string(o.Result.Value) != "2" || len(o.Shown.List) != 1 || o.Shown.List[0]["text/plain"] != "new" {
		t.Errorf("the second cell: %+v", o)
	}
	frames.BeginCell(100)
	if o := ReadCell(frames, nil); !errors.Is(o.Err, ErrProtocol) {
		t.Errorf("a result that is too long: %+v", o)
	}
	for name, line := range map[string]string{"a later cell's": value("2", "1"), "much that is old": strings.Repeat(value("0", "1")+"\n", 50)} {
		frames := NewFrameReader(strings.NewReader(line+"\n"), 0)
		frames.BeginCell(400)
		if o := ReadCell(frames, nil); !errors.Is(o.Err, ErrProtocol) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
