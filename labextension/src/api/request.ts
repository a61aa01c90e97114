/** Requests to the server extension through JupyterLab's connection; failures become `ApiError`. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ABSENT, ApiError, UNREACHABLE, errorBody, isAbort } from './errors';
import { readLines } from './ndjson';

/** Relative to the server's base URL. */
export const API_PATH = 'submarine/api/v1';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Requests below `submarine/api/v1/`. */
export class Requests {
  constructor(
    readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle
  ) {}

  /** URL of `path`; the parts are encoded. */
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

  /** POST a JSON body. */
  post(path: readonly string[], body: unknown): Promise<Response> {
    return this.send(this.url(path), { method: 'POST', body: JSON.stringify(body) });
  }

  async postJson<T>(path: readonly string[], body: unknown): Promise<T> {
    return this.json<T>(await this.post(path, body));
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
      throw isAbort(problem) || problem instanceof ApiError ? problem : this.broken();
    }
  }

  /** The error of a response that ended early. */
  broken(): ApiError {
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
        throw new DOMException('The request was given up.', 'AbortError');
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
