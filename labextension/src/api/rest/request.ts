/** Requests to the server extension through JupyterLab's connection; failures become `ApiError`. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ABSENT, ApiError, UNREACHABLE, errorBody, isAbort } from './errors';

/** Relative to the server's base URL. */
export const API_PATH = 'submarine/api/v1';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface IPostOptions {
  readonly signal?: AbortSignal | undefined;
  readonly reads?: boolean;
}

/** Requests below `submarine/api/v1/`. */
export class Requests {
  constructor(
    readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle
  ) {}

  /** URL of `path`; the parts are encoded. */
  url(path: readonly string[], query: Query = {}, lists: readonly [string, string][] = []): string {
    const parts = path.map(encodeURIComponent).join('/');
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        parameters.append(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
      }
    }
    for (const [name, value] of lists) {
      parameters.append(name, value);
    }
    const search = parameters.toString();
    return URLExt.join(this.settings.baseUrl, API_PATH, parts) + (search ? `?${search}` : '');
  }

  /**
   * GET. The request does not count as activity, so that a watched job does not keep an idle server
   * alive.
   */
  get(
    path: readonly string[],
    query: Query = {},
    signal?: AbortSignal,
    lists: readonly [string, string][] = []
  ): Promise<Response> {
    const url = this.url(path, { ...query, no_track_activity: 1 }, lists);
    return this.send(url, signal ? { signal } : {});
  }

  async getJson<T>(
    path: readonly string[],
    query: Query = {},
    signal?: AbortSignal,
    lists: readonly [string, string][] = []
  ): Promise<T> {
    return this.json<T>(await this.get(path, query, signal, lists));
  }

  /** POST a JSON body. A request that only reads does not count as activity, like a GET. */
  post(path: readonly string[], body: unknown, options: IPostOptions = {}): Promise<Response> {
    const url = this.url(path, options.reads === true ? { no_track_activity: 1 } : {});
    const init: RequestInit = { method: 'POST', body: JSON.stringify(body) };
    return this.send(url, options.signal ? { ...init, signal: options.signal } : init);
  }

  async postJson<T>(
    path: readonly string[],
    body: unknown,
    options: IPostOptions = {}
  ): Promise<T> {
    return this.json<T>(await this.post(path, body, options));
  }

  /** The lines of a streamed response. An error line ends the iteration with that error. */
  async *lines(response: Response): AsyncGenerator {
    if (!response.body) {
      return;
    }
    try {
      for await (const line of readLines(response.body)) {
        const problem = errorBody(line);
        if (problem) {
          throw new ApiError(response.status, problem);
        }
        yield line;
      }
    } catch (problem) {
      throw isAbort(problem) || problem instanceof ApiError ? problem : this.incompleteResponse();
    }
  }

  /** The error of a response that ended early. */
  incompleteResponse(): ApiError {
    const error = this.trans.__('The response of the Jupyter server is incomplete.');
    return new ApiError(0, { error, fix: this.trans.__('Try again.'), code: UNREACHABLE });
  }

  private async json<T>(response: Response): Promise<T> {
    try {
      return (await response.json()) as T;
    } catch (problem) {
      if (isAbort(problem)) {
        throw problem;
      }
      throw new ApiError(response.status, {
        error: this.trans.__('The response of the Jupyter server cannot be read.'),
        fix: this.trans.__('A proxy may require a login: reload the page.'),
        code: 'unreadable'
      });
    }
  }

  private async send(url: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch {
      if (init.signal?.aborted) {
        // JupyterLab reports an abort as a network error; restore the AbortError.
        throw new DOMException('The request was aborted.', 'AbortError');
      }
      throw new ApiError(0, {
        error: this.trans.__('The Jupyter server does not respond.'),
        fix: '',
        code: UNREACHABLE
      });
    }
    if (!response.ok) {
      throw new ApiError(response.status, await this.refusal(response));
    }
    return response;
  }

  private async refusal(response: Response) {
    const body = errorBody(await response.json().catch(() => undefined));
    if (body && (body.code || response.status !== 404)) {
      return body;
    }
    if (response.status === 404) {
      return {
        error: this.trans.__('The Submarine server extension is not enabled on this server.'),
        fix: this.trans.__('Run "jupyter server extension enable submarine_server" there.'),
        code: ABSENT
      };
    }
    if (response.status === 401 || response.status === 403) {
      return {
        error: this.trans.__('The Jupyter server rejected the request.'),
        fix: this.trans.__('Log in again, or reload the page.'),
        code: 'forbidden'
      };
    }
    return {
      error: this.trans.__('The Jupyter server returned HTTP status %1.', response.status),
      fix: '',
      code: ''
    };
  }
}

/** Maximum length of a line. */
const MAX_LINE = 1 << 20;

/** Yield the value of each line as soon as the line is complete; skip blank lines. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let ended = false;
  try {
    while (!ended) {
      const { done, value } = await reader.read();
      ended = done;
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split('\n');
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        if (line.trim()) {
          yield JSON.parse(line) as unknown;
        }
      }
      if (rest.length > MAX_LINE) {
        throw new Error('The response has a line of more than 1 MiB.');
      }
    }
  } finally {
    // Ends the search on the server if the caller stops reading.
    await reader.cancel().catch(() => undefined);
  }
}
