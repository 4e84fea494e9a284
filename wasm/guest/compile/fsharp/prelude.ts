/**
 * What F# programs expect of .NET that Fable leaves out: the console, files, the
 * environment, and the exit code. It is compiled before a program, over Deno's functions.
 *
 * @module
 */

export const PRELUDE = `namespace System.IO
open Fable.Core
type File =
  [<Emit("Deno.readTextFileSync($0)")>]
  static member ReadAllText(path: string) : string = jsNative
  [<Emit("Deno.writeTextFileSync($0, $1)")>]
  static member WriteAllText(path: string, text: string) : unit = jsNative
  [<Emit("Deno.writeTextFileSync($0, $1, { append: true })")>]
  static member AppendAllText(path: string, text: string) : unit = jsNative
  [<Emit("Deno.removeSync($0)")>]
  static member Delete(path: string) : unit = jsNative
  [<Emit("(() => { try { return Deno.statSync($0).isFile; } catch { return false; } })()")>]
  static member Exists(path: string) : bool = jsNative
  static member ReadAllLines(path: string) : string[] =
    let text = File.ReadAllText path
    if text = "" then [||] else (if text.EndsWith "\\n" then text.Substring(0, text.Length - 1) else text).Split('\\n')
  static member ReadLines(path: string) : seq<string> = File.ReadAllLines path
  static member WriteAllLines(path: string, lines: seq<string>) : unit =
    File.WriteAllText(path, lines |> Seq.map (fun line -> line + "\\n") |> String.concat "")

namespace System
open Fable.Core
module RillboxStreams =
  [<Emit("(() => { let b = new TextEncoder().encode($1); while (b.length) b = b.subarray(Deno[$0].writeSync(b)); })()")>]
  let write (stream: string) (text: string) : unit = jsNative
  [<Emit("(globalThis.fsharpInput ??= (() => { let h = new Uint8Array(0), ended = false; const d = new TextDecoder(); const more = () => { const b = new Uint8Array(65536); const n = ended ? null : Deno.stdin.readSync(b); if (n === null) { ended = true; return false; } const j = new Uint8Array(h.length + n); j.set(h); j.set(b.subarray(0, n), h.length); h = j; return true; }; return { line() { let i; while ((i = h.indexOf(10)) < 0 && more()); if (i < 0 && h.length === 0) return null; const e = i < 0 ? h.length : i; const t = d.decode(h.subarray(0, e)); h = h.slice(e + 1); return t.endsWith('\\\\r') ? t.slice(0, -1) : t; }, text() { while (more()); const t = d.decode(h); h = new Uint8Array(0); return t; } }; })()).line()")>]
  let line () : string = jsNative
  [<Emit("(globalThis.fsharpInput ? globalThis.fsharpInput.text() : (() => { let t = ''; const d = new TextDecoder(), b = new Uint8Array(65536); for (let n; (n = Deno.stdin.readSync(b)) !== null;) t += d.decode(b.subarray(0, n), { stream: true }); return t; })())")>]
  let all () : string = jsNative
  [<Emit("Deno.exit($0)")>]
  let leave (code: int) : 'a = jsNative
  [<Emit("(Deno.env.get($0) ?? null)")>]
  let variable (name: string) : string = jsNative
  [<Emit("Deno.args")>]
  let arguments () : string[] = jsNative

type RillboxWriter(stream: string) =
  member _.Write(text: string) = RillboxStreams.write stream text
  member _.WriteLine(text: string) = RillboxStreams.write stream (text + "\\n")
  member _.WriteLine() = RillboxStreams.write stream "\\n"
  member _.Flush() = ()

type RillboxReader() =
  member _.ReadLine() : string = RillboxStreams.line ()
  member _.ReadToEnd() : string = RillboxStreams.all ()

type Console =
  static member Write(x: obj) = RillboxStreams.write "stdout" (string x)
  static member WriteLine(x: obj) = RillboxStreams.write "stdout" (string x + "\\n")
  static member WriteLine() = RillboxStreams.write "stdout" "\\n"
  static member WriteLine(format: string, [<System.ParamArray>] all: obj[]) =
    RillboxStreams.write "stdout" (System.String.Format(format, all) + "\\n")
  static member ReadLine() : string = RillboxStreams.line ()
  static member In = RillboxReader()
  static member Out = RillboxWriter "stdout"
  static member Error = RillboxWriter "stderr"

type Environment =
  static member GetEnvironmentVariable(name: string) : string = RillboxStreams.variable name
  static member GetCommandLineArgs() : string[] = Array.append [| "main.fsx" |] (RillboxStreams.arguments ())
  static member Exit(code: int) : unit = RillboxStreams.leave code
  static member NewLine = "\\n"

[<AutoOpen>]
module RillboxOpen =
  let printf format = Printf.ksprintf (RillboxStreams.write "stdout") format
  let printfn format = Printf.ksprintf (fun text -> RillboxStreams.write "stdout" (text + "\\n")) format
  let eprintf format = Printf.ksprintf (RillboxStreams.write "stderr") format
  let eprintfn format = Printf.ksprintf (fun text -> RillboxStreams.write "stderr" (text + "\\n")) format
  let exit (code: int) : 'a = RillboxStreams.leave code
  let stdin = RillboxReader()
  let stdout = RillboxWriter "stdout"
  let stderr = RillboxWriter "stderr"

namespace global
[<AutoOpen>]
module RillboxGlobal =
  let printf format = System.RillboxOpen.printf format
  let printfn format = System.RillboxOpen.printfn format
  let eprintf format = System.RillboxOpen.eprintf format
  let eprintfn format = System.RillboxOpen.eprintfn format
  let exit (code: int) : 'a = System.RillboxOpen.exit code
  let stdin = System.RillboxOpen.stdin
  let stdout = System.RillboxOpen.stdout
  let stderr = System.RillboxOpen.stderr
  type FsiOptions() =
    member _.CommandLineArgs : string[] = System.Environment.GetCommandLineArgs()
  let fsi = FsiOptions()
`;
