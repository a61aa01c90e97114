/** Marks one line of an editor until its text changes; through CodeMirror, never through the DOM. */

import type { Extension } from '@codemirror/state';
import { StateEffect, StateField } from '@codemirror/state';
import type { DecorationSet } from '@codemirror/view';
import { Decoration, EditorView } from '@codemirror/view';

const setMark = StateEffect.define<number | null>();
const lineMark = Decoration.line({ class: 'jp-Submarine-markedLine' });

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (before, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(setMark)) {
        return effect.value === null
          ? Decoration.none
          : Decoration.set(lineMark.range(effect.value));
      }
    }
    // What is edited is not the line that failed any more.
    return transaction.docChanged ? Decoration.none : before;
  },
  provide: field => EditorView.decorations.from(field)
});

/** What an editor needs for the marks, unless it has it. */
export function missingExtension(view: EditorView): Extension | null {
  return view.state.field(marks, false) === undefined ? marks : null;
}

/** Mark `line` (from 1; one that is not there: the nearest) and bring it into view. */
export function markLine(view: EditorView, line: number): void {
  const { doc } = view.state;
  const at = doc.line(Math.min(Math.max(1, Math.trunc(line) || 1), doc.lines)).from;
  view.dispatch({
    effects: [setMark.of(at), EditorView.scrollIntoView(at, { y: 'center' })],
    selection: { anchor: at }
  });
}

/** Take the mark away. */
export function unmark(view: EditorView): void {
  if (view.state.field(marks, false)?.size) {
    view.dispatch({ effects: setMark.of(null) });
  }
}
