/** Mark a line of an editor until its text changes, as a CodeMirror decoration. */

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
    // An edit removes the mark: the line may no longer be the one that failed.
    return transaction.docChanged ? Decoration.none : before;
  },
  provide: field => EditorView.decorations.from(field)
});

/** The extension for marks, or null if the editor already has it. */
export function missingExtension(view: EditorView): Extension | null {
  return view.state.field(marks, false) === undefined ? marks : null;
}

/** Mark `line` (from 1, limited to the existing lines) and scroll it into view. */
export function markLine(view: EditorView, line: number): void {
  const { doc } = view.state;
  const at = doc.line(Math.min(Math.max(1, Math.trunc(line) || 1), doc.lines)).from;
  view.dispatch({
    effects: [setMark.of(at), EditorView.scrollIntoView(at, { y: 'center' })],
    selection: { anchor: at }
  });
}

/** Remove the mark. */
export function unmark(view: EditorView): void {
  if (view.state.field(marks, false)?.size) {
    view.dispatch({ effects: setMark.of(null) });
  }
}
