package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

const ready = `{"type":"ready","protocol":1}` + "\n"

func TestFrames(t *testing.T) {
	for _, test := range []struct {
		name, input string
		want        string // part of the protocol error; empty for none
	}{
		{"a whole run", ready + `{"type":"result","value":1}` + "\n", ""},
		{"nothing", "", ""},
		{"no JSON", "hello\n", "read frame"},
		{"no object", "3\n", "read frame"},
		{"unknown type", ready + `{"type":"exec"}` + "\n", `unknown type "exec"`},
		{"no type", "{}\n", "unknown type"},
		{"two results", ready + strings.Repeat(`{"type":"result"}`+"\n", 2), "second result"},
		{"other protocol", `{"type":"ready","protocol":2}` + "\n", "version 2"},
		{"no newline at the end", ready + `{"type":"result"}`, "not complete"},
		{"too long", ready + `{"type":"result","value":"` + strings.Repeat("x", 2000), "larger than the limit"},
		{"too many", strings.Repeat(ready, 100), "larger than the limit"},
		{"an uncaught error without an error", `{"type":"uncaught"}` + "\n", "without an error"},
		{"wrong type of a field", `{"type":"result","error":"x"}` + "\n", "read frame"},
		{"NUL", "\x00\n", "read frame"},
	} {
		for kind, reader := range map[string]io.Reader{
			"at once":   strings.NewReader(test.input),
			"bytewise":  iotest.OneByteReader(strings.NewReader(test.input)),
			"data, EOF": iotest.DataErrReader(strings.NewReader(test.input)),
		} {
			rest := &countingReader{Reader: reader}
			o := ReadOutcome(NewFrameReader(rest, 1000), nil, nil)
			switch {
			case test.want == "" && o.Err != nil:
				t.Errorf("%s (%s): %v", test.name, kind, o.Err)
			case test.want != "" && (!errors.Is(o.Err, ErrProtocol) || !strings.Contains(o.Err.Error(), test.want)):
				t.Errorf("%s (%s): have %v, want a protocol error with %q", test.name, kind, o.Err, test.want)
			}
			if rest.n != len(test.input) {
				t.Errorf("%s (%s): %d bytes of %d were read; the child would wait", test.name, kind, rest.n, len(test.input))
			}
		}
	}
}

type countingReader struct {
	io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestVerdict(t *testing.T) {
	result := func(line string) Outcome {
		return ReadOutcome(NewFrameReader(strings.NewReader(ready+line+"\n"), 1<<20), nil, nil)
	}
	failed := sandbox.Exit{Status: job.Failed, Code: 1}
	for _, test := range []struct {
		name    string
		outcome Outcome
		exit    sandbox.Exit
		status  job.Status
		value   string
		err     string // part of "name: message"
	}{
		{"value", result(`{"type":"result","value":{"a":1}}`), sandbox.Exit{Status: job.Completed}, job.Completed, `{"a":1}`, ""},
		{"no value", result(`{"type":"result"}`), sandbox.Exit{Status: job.Completed}, job.Completed, "", ""},
		{"error", result(`{"type":"result","error":{"name":"E","message":"m","traceback":"s"}}`), failed, job.Failed, "", "E: m"},
		{"error that claims success", result(`{"type":"result","error":{"name":"E","message":"m"}}`), sandbox.Exit{Status: job.Completed}, job.Failed, "", "E: m"},
		{"value that claims success", result(`{"type":"result","value":1}`), failed, job.Failed, "", ""},
		{"uncaught later", result(`{"type":"result","value":1}` + "\n" + `{"type":"uncaught","error":{"name":"E","message":"late"}}`), failed, job.Failed, "", "E: late"},
		{"uncaught, yet handled", result(`{"type":"uncaught","error":{"name":"E","message":"late"}}` + "\n" + `{"type":"result","value":1}`), sandbox.Exit{Status: job.Completed}, job.Completed, "1", ""},
		{"exit code alone", result(`{"type":"result"}`), sandbox.Exit{Status: job.Failed, Code: 7}, job.Failed, "", ""},
		{"no result", Outcome{}, sandbox.Exit{Status: job.Completed}, job.Failed, "", "ProtocolError: the program's process ended with exit status 0"},
		{"no result, failed", Outcome{}, sandbox.Exit{Status: job.Failed, Code: 9}, job.Failed, "", "exit status 9"},
		{"forged second result", result(`{"type":"result","value":1}` + "\n" + `{"type":"result","value":2}`), sandbox.Exit{Status: job.Completed}, job.Failed, "", "second result"},
		{"timed out", result(`{"type":"result","value":1}`), sandbox.Exit{Status: job.TimedOut, Reason: "too long"}, job.TimedOut, "", "TimeoutError: too long"},
		{"cancelled", Outcome{}, sandbox.Exit{Status: job.Cancelled, Reason: "c"}, job.Cancelled, "", "Cancelled: c"},
		{"crashed", Outcome{}, sandbox.Exit{Status: job.Crashed, Reason: "signal 11"}, job.Crashed, "", "Crashed: signal 11"},
		{"heap", Outcome{}, sandbox.Exit{Status: job.Crashed, Stderr: job.Captured{Tail: []byte("# Fatal JavaScript out of memory: Reached heap limit")}}, job.OutOfMemory, "", "OutOfMemory: the JavaScript heap is full"},
	} {
		r := test.outcome.Into(test.exit)
		have := ""
		if r.Error != nil {
			have = r.Error.Name + ": " + r.Error.Message
		}
		if r.Status != test.status || string(r.Value) != test.value || (test.err == "") != (r.Error == nil) || !strings.Contains(have, test.err) {
			t.Errorf("%s: have %s %s %q, want %s %s %q", test.name, r.Status, r.Value, have, test.status, test.value, test.err)
		}
	}
}

func TestWriteRequest(t *testing.T) {
	var b bytes.Buffer
	if err := WriteRequest(&b, map[string]string{"code": "é\n"}); err != nil {
		t.Fatal(err)
	}
	if want := "00000015\n{\"code\":\"é\\n\"}"; b.String() != want {
		t.Errorf("have %q, want %q", b.String(), want)
	}
}

// FuzzFrames looks for bytes on fd 3 that crash the reader, are believed beyond
// the limit, or keep the child waiting.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"", ready, ready + `{"type":"display","data":{"image/png":"iVBO"},"left_out":3}` + "\n", ready + `{"type":"result","value":1}` + "\n", "{}\n", "\n\n", `{"type":"result"`, "[]\n", `{"type":"result","value":` + strings.Repeat("[", 500), "\xff\xfe\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		rest := &countingReader{Reader: bytes.NewReader(input)}
		frames := NewFrameReader(rest, 256)
		frames.AllowDisplays(256)
		o := ReadOutcome(frames, nil, nil)
		if rest.n != len(input) {
			t.Fatalf("%d bytes of %d were read", rest.n, len(input))
		}
		if o.Err != nil && !errors.Is(o.Err, ErrProtocol) {
			t.Fatalf("an error that is not the protocol's: %v", o.Err)
		}
		if o.Result != nil && len(o.Result.Value) > 256 {
			t.Fatalf("a value of %d bytes was believed", len(o.Result.Value))
		}
		r := o.Into(sandbox.Exit{Status: job.Completed})
		if o.Err != nil && r.Status == job.Completed {
			t.Fatal("a broken protocol completed")
		}
	})
}
