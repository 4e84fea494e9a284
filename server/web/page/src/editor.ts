/// <reference lib="dom" />
import {
  closeBrackets,
  closeBracketsKeymap,
} from "npm:@codemirror/autocomplete@6.20.4";
import {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
} from "npm:@codemirror/commands@6.11.1";
import { javascript } from "npm:@codemirror/lang-javascript@6.2.5";
import { python } from "npm:@codemirror/lang-python@6.2.1";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "npm:@codemirror/language@6.13.1";
import {
  Compartment,
  EditorState,
  type Extension,
} from "npm:@codemirror/state@6.7.6";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "npm:@codemirror/view@6.43.15";
import { tags } from "npm:@lezer/highlight@1.2.5";

const modes: Record<string, () => Extension> = {
  javascript: () => javascript({ jsx: true }),
  typescript: () => javascript({ jsx: true, typescript: true }),
  python: () => [python(), indentUnit.of("    ")],
};

// page.css has the colours, light and dark.
const colours = HighlightStyle.define([
  {
    tag: [tags.keyword, tags.modifier, tags.operatorKeyword],
    color: "var(--keyword)",
  },
  {
    tag: [tags.string, tags.special(tags.string), tags.regexp],
    color: "var(--string)",
  },
  {
    tag: [tags.number, tags.bool, tags.null, tags.atom],
    color: "var(--number)",
  },
  { tag: tags.comment, color: "var(--comment)", fontStyle: "italic" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName)],
    color: "var(--name)",
  },
  {
    tag: [tags.typeName, tags.className, tags.tagName, tags.meta],
    color: "var(--type)",
  },
]);

const theme = EditorView.theme({
  "&": {
    color: "var(--text)",
    backgroundColor: "var(--field)",
    fontSize: "14px",
    height: "100%",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content, .cm-gutters": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--field)",
    color: "var(--muted)",
    border: "none",
  },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { background: "var(--selection)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
});

/** Editor is where the program is written. */
export class Editor {
  #view: EditorView;
  #mode = new Compartment();

  /** Run is called for Ctrl-Enter. */
  constructor(parent: HTMLElement, run: () => void) {
    // In a shadow tree the editor's style sheets need no inline styles, which the page's
    // policy forbids.
    const root = parent.attachShadow({ mode: "open" });
    this.#view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        extensions: [
          keymap.of([{
            key: "Mod-Enter",
            preventDefault: true,
            run: () => (run(), true),
          }]),
          keymap.of([
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...historyKeymap,
            indentWithTab,
          ]),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          syntaxHighlighting(colours),
          theme,
          EditorView.contentAttributes.of({
            tabindex: "0",
            "aria-label":
              "Program. Escape, then Tab, leaves the editor. Control-Enter runs.",
          }),
          this.#mode.of([]),
        ],
      }),
    });
  }

  get code(): string {
    return this.#view.state.doc.toString();
  }

  set code(code: string) {
    this.#view.dispatch({
      changes: { from: 0, to: this.#view.state.doc.length, insert: code },
    });
  }

  set language(language: string) {
    this.#view.dispatch({
      effects: this.#mode.reconfigure(modes[language]?.() ?? []),
    });
  }

  focus(): void {
    this.#view.focus();
  }
}
