//go:build !windows

package wire

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
)

// A cell's input comes piece by piece, one for each question, and nothing is read that
// nobody asked for.
func TestPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		sent := make(chan any, 10)
		input := Pieces(from, func(piece any) { sent <- piece })
		want := func(what string, want ...any) {
			t.Helper()
			synctest.Wait()
			for _, w := range want {
				select {
				case got := <-sent:
					if !reflect.DeepEqual(got, w) {
						t.Errorf("%s: %v, want %v", what, got, w)
					}
				default:
					t.Errorf("%s: nothing was sent", what)
				}
			}
			if len(sent) > 0 {
				t.Errorf("%s: %v was sent beside", what, <-sent)
			}
		}
		input.Ask()
		input.Ask() // a guest's own: it gets one answer
		want("before there is anything")
		_, _ = io.WriteString(to, "one")
		want("a piece", piece{Stdin: []byte("one")})
		write := make(chan bool)
		go func() {
			_, _ = io.WriteString(to, "two")
			close(write)
		}()
		want("what nobody asked for")
		select {
		case <-write:
			t.Error("it was read before it was asked for")
		default:
		}
		input.Ask()
		want("the next", piece{Stdin: []byte("two")})
		_ = to.Close()
		input.Ask()
		input.Ask()
		synctest.Wait()
		if got, ok := (<-sent).(piece); !ok || len(got.Stdin) != 0 {
			t.Errorf("its end is %v", got)
		}
		for len(sent) > 0 {
			<-sent
		}

		from, to = io.Pipe()
		input = Pieces(from, func(piece any) { sent <- piece })
		input.Ask()
		input.Interrupt()
		want("interrupted while it waits", interruption)
		_, _ = io.WriteString(to, "late")
		want("what came late")
		input.Ask()
		want("interrupted before it asks", interruption)

		input = Pieces(strings.NewReader("x"), func(piece any) { sent <- piece })
		input.End()
		input.Ask()
		want("after its end")
		input = Pieces(nil, func(piece any) { sent <- piece })
		input.Ask()
		want("no input", piece{Stdin: []byte{}})
	})
}
