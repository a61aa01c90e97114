/**
 * Render one line as DOM: text nodes and CSS classes only, so that the output of a job stays text.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { size } from '../../format';
import { PLAIN, type Color, type ISpan, type IStyle } from '../lines/ansi';
import type { IRow } from '../lines/window';
import type { LogSource } from '../lines/sources';

export interface IRowOptions {
  readonly trans: TranslationBundle;
  /** What to show before each line. */
  readonly label: 'none' | 'task' | 'attempt';
  readonly times: boolean;
  /** Matches to highlight; null for none. */
  readonly mark: RegExp | null;
  /** Called by the button of a skipped part. */
  readonly onLoad: (row: IRow) => void;
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/** Matches are highlighted in this number of characters of a line. */
const MAX_SEARCHED = 4000;
const LABEL_COLORS = 6;

/** The label that distinguishes these logs. */
export function labelOf(sources: readonly LogSource[]): IRowOptions['label'] {
  const tasks = new Set(sources.map(source => source.task));
  const attempts = new Set(sources.map(source => `${source.task}/${source.attempt}`));
  return attempts.size > tasks.size ? 'attempt' : tasks.size > 1 ? 'task' : 'none';
}

/** Render a line. */
export function rowNode(row: IRow, options: IRowOptions): HTMLElement {
  const node = element('div', 'jp-Submarine-log-row');
  if (row.kind === 'skip') {
    fillSkip(node, row, options);
    return node;
  }
  if (row.source.stream === 'stderr') {
    node.classList.add('jp-mod-stderr');
  }
  if (options.times) {
    node.append(timeNode(row, options.trans));
  }
  if (options.label !== 'none') {
    node.append(labelNode(row, options.label));
  }
  const text = element('span', 'jp-Submarine-log-text');
  fillText(text, row, options.mark);
  node.append(text);
  return node;
}

function fillText(node: HTMLElement, row: IRow, mark: RegExp | null): void {
  if (row.text === '') {
    node.append(document.createElement('br'));
    return;
  }
  const marks = mark === null ? [] : matches(row.text, mark);
  if (row.spans.length === 0 && marks.length === 0) {
    node.textContent = row.text;
    return;
  }
  const spans: readonly ISpan[] =
    row.spans.length > 0 ? row.spans : [{ text: row.text, style: PLAIN }];
  let at = 0;
  for (const span of spans) {
    node.append(...spanNodes(span, at, marks));
    at += span.text.length;
  }
}

/** Split a span at the ends of matches. */
function spanNodes(span: ISpan, at: number, marks: readonly [number, number][]): Node[] {
  const nodes: Node[] = [];
  const end = at + span.text.length;
  let from = at;
  const add = (to: number, marked: boolean) => {
    if (to > from) {
      const text = span.text.slice(from - at, to - at);
      nodes.push(styled(text, span.style, marked));
      from = to;
    }
  };
  for (const [start, stop] of marks) {
    if (stop > from && start < end) {
      add(Math.max(from, start), false);
      add(Math.min(end, stop), true);
    }
  }
  add(end, false);
  return nodes;
}

function styled(text: string, style: IStyle, marked: boolean): Node {
  const classes = classesOf(style);
  if (!marked && classes.length === 0) {
    return document.createTextNode(text);
  }
  const node = element(marked ? 'mark' : 'span', '');
  node.classList.add(...classes);
  node.textContent = text;
  setColor(node, '--jp-submarine-fg', style.fg);
  setColor(node, '--jp-submarine-bg', style.bg);
  return node;
}

function classesOf(style: IStyle): string[] {
  const classes: string[] = [];
  for (const name of ['bold', 'dim', 'italic', 'underline', 'strike', 'inverse'] as const) {
    if (style[name]) {
      classes.push(`jp-Submarine-sgr-${name}`);
    }
  }
  if (style.fg !== null) {
    classes.push(`jp-Submarine-fg-${nameOf(style.fg)}`);
  }
  if (style.bg !== null) {
    classes.push('jp-Submarine-bg', `jp-Submarine-bg-${nameOf(style.bg)}`);
  }
  return classes;
}

function nameOf(color: Color): string {
  return typeof color === 'string' ? 'rgb' : (NAMES[color % 8] ?? 'white');
}

function setColor(node: HTMLElement, property: string, color: Color | null): void {
  if (typeof color === 'string') {
    node.style.setProperty(property, `rgb(${color})`);
  }
}

/** Start and end of each match, in characters. */
function matches(text: string, mark: RegExp): [number, number][] {
  const found: [number, number][] = [];
  for (const match of text.slice(0, MAX_SEARCHED).matchAll(mark)) {
    if (match[0] !== '') {
      found.push([match.index, match.index + match[0].length]);
    }
  }
  return found;
}

function timeNode(row: IRow, trans: TranslationBundle): HTMLElement {
  const node = element('span', 'jp-Submarine-log-time');
  if (row.time !== null) {
    node.textContent = new Date(row.time).toLocaleTimeString(undefined, { hour12: false });
    node.title = trans.__('Time at which this line was written or received');
  }
  return node;
}

function labelNode(row: IRow, label: 'task' | 'attempt'): HTMLElement {
  const { task, attempt } = row.source;
  const node = element('span', 'jp-Submarine-log-label');
  node.classList.add(`jp-Submarine-label-${colorOf(task)}`);
  node.textContent = label === 'attempt' ? `${task} ${attempt}` : task;
  return node;
}

/**
 * The color of a task, from its index and the length of its role's name, so that neighbors differ.
 */
function colorOf(task: string): number {
  const [role = '', index = '0'] = task.split(':');
  return ((Number(index) || 0) + role.length) % LABEL_COLORS;
}

function fillSkip(node: HTMLElement, row: IRow, { trans, onLoad }: IRowOptions): void {
  node.classList.add('jp-mod-skip');
  const amount = size(row.end - row.offset);
  node.append(
    trans.__(
      'Skipped %1 of %2 (%3): too much output to display.',
      amount,
      row.source.task,
      row.source.stream
    )
  );
  const button = element('button', 'jp-Submarine-log-link') as HTMLButtonElement;
  button.type = 'button';
  button.textContent = trans.__('Load');
  button.addEventListener('click', () => {
    onLoad(row);
  });
  node.append(' ', button);
}

function element(tag: string, name: string): HTMLElement {
  const node = document.createElement(tag);
  if (name !== '') {
    node.className = name;
  }
  return node;
}
