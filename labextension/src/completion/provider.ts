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
import { isPlain, typedAt } from './typed';

/** Words after `%%submarine`: options, and verbs that use the text of the cell. */
const COLLECT_OPTIONS: readonly string[] = ['--file', '--only', 'run', 'workflow'];
/** Timeout in milliseconds. */
const PATIENCE = 800;
const MOST = 200;

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
    const typed = typedAt(text, offset);
    const last = typed?.words.at(-1) ?? '';
    if (!typed || text.slice(offset - last.length, offset) !== last) {
      return { start: offset, end: offset, items: [] };
    }
    const { marks, words } = typed;
    const verb = words.length > 1 ? (words[0] ?? '') : '';
    if (marks === '%%' && verb !== 'run' && verb !== '' && !verb.startsWith('-')) {
      // The kernel completes the options and the text of these verbs.
      return { start: offset, end: offset, items: [] };
    }
    const above = marks === '%%' && verb !== 'run';
    const found = above ? COLLECT_OPTIONS : await this.ask(words);
    const items = found
      .filter(word => word.startsWith(last) && isPlain(word))
      .slice(0, MOST)
      .map(word => ({ label: word, insertText: word, type: 'magic' }));
    return { start: offset - last.length, end: offset, items };
  }

  /** The completions of the server; empty if the request fails. */
  private async ask(words: readonly string[]): Promise<readonly string[]> {
    this._asked?.abort();
    const asked = (this._asked = new AbortController());
    const timer = setTimeout(() => {
      asked.abort();
    }, PATIENCE);
    try {
      const found: unknown = await this.rest.complete(words, asked.signal);
      return Array.isArray(found)
        ? found.filter((word): word is string => typeof word === 'string')
        : [];
    } catch {
      return [];
    } finally {
      clearTimeout(timer);
    }
  }

  private _asked: AbortController | null = null;
}
