/** The REST interface of the server extension. */

import { URLExt } from '@jupyterlab/coreutils';
import type { IRest } from '../../tokens';
import type { Requests } from './request';
import type {
  IJobView,
  IModelVersion,
  ISeries,
  ICluster,
  IHealth,
  IJobsPage,
  ILineage,
  ILogInfo,
  ILogPage,
  ILogPageQuery,
  ILogPlace,
  ILogQuery,
  ILogTimes,
  ISearchHit
} from '../types';
import type { ITask, State } from '../record';

export class Rest implements IRest {
  constructor(private readonly requests: Requests) {}

  health(): Promise<IHealth> {
    return this.requests.getJson(['health']);
  }

  jobs(
    options: { states?: readonly State[]; text?: string; limit?: number; after?: string } = {}
  ): Promise<IJobsPage> {
    const { states = [], text, limit, after } = options;
    return this.requests.getJson(
      ['jobs'],
      { text, limit, after },
      undefined,
      states.map(state => ['state', state])
    );
  }

  job(job: string): Promise<IJobView> {
    return this.requests.getJson(['jobs', job]);
  }

  tasks(job: string, offset: number, limit: number): Promise<{ tasks: ITask[]; total: number }> {
    return this.requests.getJson(['jobs', job, 'tasks'], { offset, limit });
  }

  async metrics(job: string, points?: number): Promise<ISeries[]> {
    const path = ['jobs', job, 'metrics'];
    return (await this.requests.getJson<{ series: ISeries[] }>(path, { points })).series;
  }

  async models(job: string): Promise<IModelVersion[]> {
    const path = ['jobs', job, 'models'];
    return (await this.requests.getJson<{ models: IModelVersion[] }>(path)).models;
  }

  lineage(job: string, version: string): Promise<ILineage> {
    return this.requests.getJson(['jobs', job, 'lineage'], { version });
  }

  async logs(job: string): Promise<ILogInfo[]> {
    return (await this.requests.getJson<{ logs: ILogInfo[] }>(['jobs', job, 'logs'])).logs;
  }

  async log(job: string, where: ILogPlace, offset: number, limit: number, signal?: AbortSignal) {
    const query = { ...logQuery(where), offset, limit };
    const response = await this.requests.get(['jobs', job, 'log'], query, signal);
    const data = new Uint8Array(await response.arrayBuffer());
    const start = parseOffset(response.headers.get('X-Submarine-Offset'), Math.max(0, offset));
    return {
      data,
      offset: start,
      length: parseOffset(response.headers.get('X-Submarine-Length'), start + data.length)
    };
  }

  logTimes(job: string, where: ILogPlace, offset: number, limit: number): Promise<ILogTimes> {
    return this.requests.getJson(['jobs', job, 'log', 'times'], {
      ...logQuery(where),
      offset,
      limit
    });
  }

  logPage(job: string, query: ILogPageQuery, signal?: AbortSignal): Promise<ILogPage> {
    return this.requests.postJson(['jobs', job, 'log', 'page'], query, { signal, reads: true });
  }

  async search(
    job: string,
    where: ILogPlace,
    query: ILogQuery,
    onHit: (hit: ISearchHit) => void,
    signal?: AbortSignal
  ): Promise<{ next: number | null; scanned: number }> {
    const { text, regex, matchCase, from, backward, limit } = query;
    const response = await this.requests.get(
      ['jobs', job, 'log', 'search'],
      { ...logQuery(where), q: text, regex, case: matchCase, from, backward, limit },
      signal
    );
    for await (const line of this.requests.lines(response)) {
      if (isDone(line)) {
        return { next: line.next, scanned: line.scanned };
      }
      onHit(line as ISearchHit);
    }
    throw this.requests.incompleteResponse();
  }

  downloadUrl(job: string, where: ILogPlace): string {
    return this.requests.url(['jobs', job, 'log'], { ...logQuery(where), download: 1 });
  }

  async script(job: string): Promise<string> {
    return (await this.requests.get(['jobs', job, 'script'])).text();
  }

  async cancel(job: string, why: string): Promise<void> {
    await this.requests.post(['jobs', job, 'cancel'], { why });
  }

  async rerun(job: string, resume: boolean): Promise<string> {
    const path = ['jobs', job, 'rerun'];
    return (await this.requests.postJson<{ job_id: string }>(path, { resume })).job_id;
  }

  saveModel(job: string, name: string): Promise<IModelVersion> {
    return this.requests.postJson(['jobs', job, 'models'], { name });
  }

  cluster(): Promise<ICluster> {
    return this.requests.getJson(['cluster']);
  }

  async complete(words: readonly string[], signal?: AbortSignal): Promise<string[]> {
    const lists = words.map((word): [string, string] => ['words', word]);
    const path = ['complete'];
    return (await this.requests.getJson<{ words: string[] }>(path, {}, signal, lists)).words;
  }

  tensorboardUrl(jobs: readonly string[]): string {
    const names = jobs.map(encodeURIComponent).join(',');
    return URLExt.join(this.requests.settings.baseUrl, 'submarine/tensorboard', names) + '/';
  }
}

/** Only the fields that identify a log; callers may pass larger objects. */
function logQuery({ task, attempt, stream }: ILogPlace): ILogPlace {
  return { task, attempt, stream };
}

function parseOffset(text: string | null, fallback: number): number {
  const value = text === null ? NaN : Number(text);
  return Number.isSafeInteger(value) && value >= 0 ? value : fallback;
}

function isDone(line: unknown): line is { done: true; next: number | null; scanned: number } {
  return typeof line === 'object' && line !== null && 'done' in line && line.done === true;
}
