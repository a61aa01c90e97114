/**
 * Complete `%submarine` lines from the server: queues and jobs of the cluster, and everything while
 * the kernel is busy.
 *
 * The kernel's completer also returns verbs and options. JupyterLab merges the results.
 */

import type {
  CompletionHandler,
  ICompletionContext,
  ICompletionProvider
} from '@jupyterlab/completer';
import type { IRest } from '../tokens';

/** Words after `%%submarine`: options, and verbs that use the text of the cell. */
const COLLECT_OPTIONS: readonly string[] = ['--file', '--only', 'run', 'workflow'];
/** Timeout in milliseconds. */
const TIMEOUT = 800;
const MAX_ITEMS = 200;

type Reply = CompletionHandler.ICompletionItemsReply;

export class SubmarineCompletions implements ICompletionProvider {
  readonly identifier = 'jupyter-submarine:completions';
  /** Between the context completer and the kernel completer. */
  readonly rank = 540;

  /** @param absent - Whether the server extension is known to be missing. */
  constructor(
    private readonly rest: Pick<IRest, 'complete'>,
    private readonly absent: () => boolean
  ) {}

  isApplicable({ editor }: ICompletionContext): Promise<boolean> {
    if (this.absent() || !editor) {
      return Promise.resolve(false);
    }
    const { line } = editor.getCursorPosition();
    return Promise.resolve(/%submarine\s/.test(editor.getLine(line) ?? ''));
  }

  async fetch(request: CompletionHandler.IRequest): Promise<Reply> {
    const { offset, text } = request;
    const line = parseMagicLine(text, offset);
    const last = line?.words.at(-1) ?? '';
    if (!line || text.slice(offset - last.length, offset) !== last) {
      return { start: offset, end: offset, items: [] };
    }
    const { marks, words } = line;
    const verb = words.length > 1 ? (words[0] ?? '') : '';
    if (marks === '%%' && verb !== 'run' && verb !== '' && !verb.startsWith('-')) {
      // The kernel completes the options and the text of these verbs.
      return { start: offset, end: offset, items: [] };
    }
    const isCollecting = marks === '%%' && verb !== 'run';
    const found = isCollecting ? COLLECT_OPTIONS : await this.request(words);
    const items = found
      .filter(word => word.startsWith(last) && isPlain(word))
      .slice(0, MAX_ITEMS)
      .map(word => ({ label: word, insertText: word, type: 'magic' }));
    return { start: offset - last.length, end: offset, items };
  }

  /** The completions of the server; empty if the request fails. */
  private async request(words: readonly string[]): Promise<readonly string[]> {
    this._controller?.abort();
    const controller = (this._controller = new AbortController());
    const timer = setTimeout(() => {
      controller.abort();
    }, TIMEOUT);
    try {
      const found: unknown = await this.rest.complete(words, controller.signal);
      return Array.isArray(found)
        ? found.filter((word): word is string => typeof word === 'string')
        : [];
    } catch {
      return [];
    } finally {
      clearTimeout(timer);
    }
  }

  private _controller: AbortController | null = null;
}

const MAGIC = /^(?:[ \t]*|.*=[ \t]*)(%%?)submarine[ \t](.*)$/;

export interface IMagicLine {
  /** `%%` at the top of a cell; `%` on its own line or after `name =`. */
  marks: '%' | '%%';
  /** The words before the cursor. The last one is being typed and may be empty. */
  words: string[];
}

/** The submarine line that ends at `offset` of a cell's text; null if it is another line. */
export function parseMagicLine(text: string, offset: number): IMagicLine | null {
  const before = text.slice(0, offset);
  const match = MAGIC.exec(before.slice(before.lastIndexOf('\n') + 1));
  if (!match) {
    return null;
  }
  const words = split(match[2] ?? '');
  return words ? { marks: match[1] === '%%' ? '%%' : '%', words } : null;
}

/** Split like a shell; null inside quotes, where nothing is completed. */
function split(line: string): string[] | null {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (const sign of line) {
    if (quote) {
      word += sign === quote ? '' : sign;
      quote = sign === quote ? '' : quote;
    } else if (sign === '"' || sign === "'") {
      quote = sign;
    } else if (sign !== ' ' && sign !== '\t') {
      word += sign;
    } else if (word) {
      words.push(word);
      word = '';
    }
  }
  return quote ? null : [...words, word];
}

/** Whether a word can be inserted without quotes. */
export function isPlain(word: string): boolean {
  return /^[\w@%+=:,./-]+$/.test(word);
}
