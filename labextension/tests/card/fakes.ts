/** Test data of jobs, and a fake server, for the tests of the card. */

import { Signal } from '@lumino/signaling';
import type { TranslationBundle } from '@jupyterlab/translation';
import { vi } from 'vitest';
import { CancelRequests } from '../../src/api/cancel_requests';
import type { IJobRecord, ITask } from '../../src/api/record';
import type { IJobView, ILineage, IModelVersion, ISeries } from '../../src/api/types';
import type { IChannel, IRest, ISubmarine, ISubscription } from '../../src/tokens';

export const JOB = 'digits-20261120-7f3a';

/** English texts with inserted values. */
export const trans = {
  __: (text: string, ...values: unknown[]) => fill(text, values),
  _n: (one: string, many: string, n: number, ...values: unknown[]) =>
    fill(n === 1 ? one : many, [n, ...values])
} as unknown as TranslationBundle;

function fill(text: string, values: unknown[]): string {
  return text.replace(/%(\d)/g, (_, n: string) => String(values[Number(n) - 1]));
}

export function task(index: number, changes: Partial<ITask> = {}): ITask {
  return {
    task: `worker:${index}`,
    role: 'worker',
    index,
    epoch: 1,
    attempt: 1,
    state: 'RUNNING',
    container_id: `container_1732_0001_01_${String(index + 2).padStart(6, '0')}`,
    host: 'node1',
    started: 1010,
    finished: null,
    exit_code: null,
    signal: null,
    progress: null,
    gpus: [],
    memory_now: 512,
    memory_peak: 812,
    cpu_seconds: 30,
    gpu_percent: null,
    gpu_memory: null,
    restarts: 0,
    reason: null,
    detail: '',
    log_url: null,
    ...changes
  };
}

export function record(changes: Partial<IJobRecord> = {}): IJobRecord {
  return {
    job_id: JOB,
    name: 'digits',
    state: 'RUNNING',
    user: 'ada',
    backend: 'yarn',
    job_dir: 'hdfs://nn/user/ada/.submarine/jobs/202611/digits-20261120-7f3a',
    queue: 'gpu',
    application_id: 'application_1732_0001',
    workflow: '',
    workflow_run: '',
    workflow_node: '',
    created: 1000,
    finished: null,
    reason: null,
    detail: '',
    exit_code: null,
    signal: null,
    progress: 0.42,
    phases: [
      { name: 'upload', start: 1000, end: 1002 },
      { name: 'queue', start: 1002, end: 1008 },
      { name: 'run', start: 1010, end: null }
    ],
    tasks: [task(0)],
    failure: null,
    resources: {},
    outputs: [],
    saved_outputs: [],
    logs: {},
    links: { YARN: 'http://rm:8088/cluster/app/application_1732_0001' },
    warnings: [],
    missing: [],
    behind: null,
    epoch: 1,
    pending: '',
    hints: [],
    notes: [],
    ...changes
  };
}

export function view(changes: Partial<IJobRecord> = {}, values: Partial<IJobView> = {}): IJobView {
  const job = record(changes);
  return {
    record: job,
    source: 'live',
    pending: '',
    advice: '',
    lost_if_cancelled: '',
    status: 'The program is running on node1.',
    log_task: 'worker:0',
    task_count: job.tasks.length,
    events: [],
    command: 'submarine run digits',
    notebook: 'digits.ipynb',
    cell_id: 'abc',
    mine: true,
    has_tensorboard: false,
    ...values
  };
}

/** A fake server; the test sends its messages. */
export class FakeSubmarine implements ISubmarine {
  readonly subscriptions: { kind: string; job: string; disposed: boolean }[] = [];
  sendView: (view: IJobView) => void = () => undefined;
  sendError: (message: string) => void = () => undefined;
  sendSeries: (series: readonly ISeries[]) => void = () => undefined;
  models: IModelVersion[] = [];
  readonly modelsRequested = vi.fn();
  lineageRows: [string, string][] = [];
  lineageError: Error | null = null;
  ready: Promise<{ available: boolean; problem: string }> = Promise.resolve({
    available: true,
    problem: ''
  });

  get open(): string[] {
    return this.subscriptions.filter(one => !one.disposed).map(one => one.kind);
  }

  readonly rest = {
    models: (job: string): Promise<IModelVersion[]> => {
      this.modelsRequested(job);
      return Promise.resolve(this.models);
    },
    lineage: (_job: string, version: string): Promise<ILineage> =>
      this.lineageError === null
        ? Promise.resolve({ version, rows: this.lineageRows })
        : Promise.reject(this.lineageError)
  } as unknown as IRest;

  cancelError: Error | null = null;
  readonly cancels = new CancelRequests(() =>
    this.cancelError === null ? Promise.resolve() : Promise.reject(this.cancelError)
  );

  readonly channel = this.makeChannel();

  setConnected(connected: boolean): void {
    this._connected = connected;
    this.channel.connectedChanged.emit(connected);
  }

  private makeChannel() {
    // eslint-disable-next-line @typescript-eslint/no-this-alias
    const fake = this;
    const channel = {
      get connected(): boolean {
        return fake._connected;
      },
      job: (
        job: string,
        listener: (view: IJobView) => void,
        onError: (message: string) => void
      ): ISubscription => {
        this.sendView = listener;
        this.sendError = onError;
        return this.subscribe('job', job);
      },
      metrics: (
        job: string,
        _points: number,
        listener: (series: readonly ISeries[]) => void
      ): ISubscription => {
        this.sendSeries = listener;
        return this.subscribe('metrics', job);
      }
    };
    const changed = new Signal<IChannel, boolean>(channel as unknown as IChannel);
    Object.defineProperty(channel, 'connectedChanged', { value: changed });
    return channel as unknown as IChannel & {
      connectedChanged: Signal<IChannel, boolean>;
    };
  }

  private subscribe(kind: string, job: string): ISubscription {
    const entry = { kind, job, disposed: false };
    this.subscriptions.push(entry);
    return {
      get isDisposed(): boolean {
        return entry.disposed;
      },
      dispose: () => {
        entry.disposed = true;
      }
    };
  }

  private _connected = true;
}
