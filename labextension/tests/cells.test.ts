import { EditorState, StateEffect } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, expect, test } from 'vitest';
import { markLine, missingExtension, unmark } from '../src/cells/marked_line';
import { collectedInto, toggled } from '../src/cells/tag';
import { DEFAULTS, complete } from '../src/settings';
import schema from '../schema/plugin.json';

// The same cases as in the tests of the kernel (tests/unit/jobs/program/test_collection.py).
test.each([
  [['submarine'], 'main.py'],
  [[' submarine '], 'main.py'],
  [['x', 'submarine:model.py'], 'model.py'],
  [['submarine', 'submarine: pkg/model.py'], 'pkg/model.py'],
  [['submarine:a b.py'], 'a b.py'],
  [['submarine:'], ''],
  [['submarine-only'], 'main.py'],
  [['x', 'submarine-only:model.py'], 'model.py'],
  [['Submarine', 'submarine-x', 'x:submarine', ''], null],
  [[{ submarine: 1 }, null, 7], null],
  ['submarine', null],
  [undefined, null]
])('tags %j collect into %j', (tags, file) => {
  expect(collectedInto(tags)).toBe(file);
});

test('adds and removes the tag and keeps the other tags', () => {
  expect(toggled(undefined)).toEqual(['submarine']);
  expect(toggled(['slow', 3])).toEqual(['slow', 'submarine']);
  expect(toggled(['slow', 'submarine', 'submarine-only:a.py'])).toEqual(['slow']);
});

const views: EditorView[] = [];

// jsdom has no layout: an editor that is not destroyed would try to measure its text.
afterEach(() => {
  for (const view of views.splice(0)) {
    view.destroy();
  }
});

function editor(doc: string): EditorView {
  const view = new EditorView({ state: EditorState.create({ doc }) });
  const extension = missingExtension(view);
  if (extension) {
    view.dispatch({ effects: StateEffect.appendConfig.of(extension) });
  }
  views.push(view);
  return view;
}

function marked(view: EditorView): string[] {
  return [...view.dom.querySelectorAll('.jp-Submarine-markedLine')].map(n => n.textContent);
}

test('marks one line until the text changes or the mark is removed', () => {
  const view = editor('a = 1\nb = 1 / 0\nc = 3');
  expect(missingExtension(view)).toBeNull();
  markLine(view, 2);
  expect(marked(view)).toEqual(['b = 1 / 0']);
  expect(view.state.selection.main.head).toBe(6);
  markLine(view, 3);
  expect(marked(view)).toEqual(['c = 3']);
  view.dispatch({ changes: { from: 0, insert: '# ' } });
  expect(marked(view)).toEqual([]);
  markLine(view, 1);
  unmark(view);
  expect(marked(view)).toEqual([]);
});

test.each([
  [0, 'one'],
  [-7, 'one'],
  [99, 'two'],
  [NaN, 'one'],
  [1.9, 'one']
])('marks the existing line that is nearest to line %j', (line, text) => {
  const view = editor('one\ntwo');
  markLine(view, line);
  expect(marked(view)).toEqual([text]);
});

test('the settings schema declares the defaults, and invalid settings are ignored', () => {
  const properties: Record<string, { default: unknown }> = schema.properties;
  const defaults = Object.entries(properties).map(([name, value]) => [name, value.default]);
  expect(Object.fromEntries(defaults)).toEqual(DEFAULTS);
  expect(complete({ follow: 'yes', wrap: true, panel: 'top', more: 1 })).toEqual({
    ...DEFAULTS,
    wrap: true
  });
});
