/** One request to the server extension, as JupyterLab itself asks; errors become `ApiError`. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ABSENT, ApiError, UNREACHABLE, errorBody, isAbort } from './errors';
import { readLines } from './ndjson';

/** Below the server's base URL. */
export const API_PATH = 'submarine/api/v1';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Asks below `submarine/api/v1/`. */
export class Requests {
  constructor(
    readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle
  ) {}

  /** Address of `path`, whose parts are encoded here. */
  url(path: readonly string[], query: Query = {}, lists: readonly [string, string][] = []): string {
    const parts = path.map(encodeURIComponent).join('/');
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        words.append(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
      }
    }
    for (const [name, value] of lists) {
      words.append(name, value);
    }
    const asked = words.toString();
    return URLExt.join(this.settings.baseUrl, API_PATH, parts) + (asked ? `?${asked}` : '');
  }

  /** GET; watching a job must not keep an idle server alive. */
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

  /** POST of a JSON body; what the answer holds is the caller's. */
  post(path: readonly string[], body: unknown): Promise<Response> {
    return this.send(this.url(path), { method: 'POST', body: JSON.stringify(body) });
  }

  async postJson<T>(path: readonly string[], body: unknown): Promise<T> {
    return this.json<T>(await this.post(path, body));
  }

  /** The lines of a streamed answer; one that holds an error ends it with that error. */
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
      throw isAbort(problem) || problem instanceof ApiError ? problem : this.broken();
    }
  }

  /** An answer that ended before its end. */
  broken(): ApiError {
    const error = this.trans.__('The answer of the Jupyter server broke off.');
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
        error: this.trans.__('The Jupyter server gave an answer that cannot be read.'),
        fix: this.trans.__('A proxy before it may want you to log in: reload the page.'),
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
        // JupyterLab makes a network error of it, which nobody would know for what it is.
        throw new DOMException('The request was given up.', 'AbortError');
      }
      throw new ApiError(0, {
        error: this.trans.__('The Jupyter server does not answer.'),
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
    const said = errorBody(await response.json().catch(() => undefined));
    if (said && (said.code || response.status !== 404)) {
      return said;
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
        error: this.trans.__('The Jupyter server did not accept this page.'),
        fix: this.trans.__('Log in again, or reload the page.'),
        code: 'forbidden'
      };
    }
    return {
      error: this.trans.__('The Jupyter server answered %1.', response.status),
      fix: '',
      code: ''
    };
  }
}
