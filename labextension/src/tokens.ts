/** The public interfaces of the extension, for our own plugins and for those of others. */

import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type { IJobView, IModelVersion, ISeries, ITask, State } from './api/job_types';
import type { ICluster, IHealth, IJobRow, IJobsPage, IKernelStart } from './api/list_types';
import type { ILogInfo, ILogPlace, ILogQuery, ILogTimes, ISearchHit } from './api/log_types';
import type { ServerMessage } from './api/wire_types';

/** MIME type of a job in a notebook's outputs. */
export const MIME_TYPE = 'application/vnd.submarine.job.v1+json';

/** Names of our commands; each takes `{ job: string }` unless it says otherwise. */
export namespace CommandIDs {
  /** The log view as a tab; also `task?: string`. */
  export const logs = 'submarine:logs';
  /** A job's card as a tab. */
  export const show = 'submarine:show';
  /** `{ jobs: string[] }` */
  export const tensorboard = 'submarine:tensorboard';
  export const cancel = 'submarine:cancel';
  /** Also `resume?: boolean`. */
  export const rerun = 'submarine:rerun';
  export const saveModel = 'submarine:save-model';
  export const copyCommand = 'submarine:copy-command';
  /** `{ notebook: string; cell: string; line?: number }`: scroll to the cell and mark the line. */
  export const revealCell = 'submarine:reveal-cell';
  /** The jobs panel. */
  export const jobs = 'submarine:jobs';
}

/** Answers of the server; every method rejects with `ApiError`. */
export interface IRest {
  health(): Promise<IHealth>;
  jobs(options?: {
    states?: readonly State[];
    text?: string;
    limit?: number;
    after?: string;
  }): Promise<IJobsPage>;
  job(job: string): Promise<IJobView>;
  /** The tasks beyond those that a view holds. */
  tasks(job: string, offset: number, limit: number): Promise<{ tasks: ITask[]; total: number }>;
  metrics(job: string, points?: number): Promise<ISeries[]>;
  models(job: string): Promise<IModelVersion[]>;
  logs(job: string): Promise<ILogInfo[]>;
  /** Bytes from `offset` (negative: from the end), and where they lie. */
  log(
    job: string,
    where: ILogPlace,
    offset: number,
    limit: number,
    signal?: AbortSignal
  ): Promise<{ data: Uint8Array; offset: number; length: number }>;
  /** When these bytes of a log were written. */
  logTimes(job: string, where: ILogPlace, offset: number, limit: number): Promise<ILogTimes>;
  /** Hits as they are found. */
  search(
    job: string,
    where: ILogPlace,
    query: ILogQuery,
    onHit: (hit: ISearchHit) => void,
    signal?: AbortSignal
  ): Promise<{ next: number | null; scanned: number }>;
  /** Address from which the browser downloads a log as a file. */
  downloadUrl(job: string, where: ILogPlace): string;
  script(job: string): Promise<string>;
  cancel(job: string, why: string): Promise<void>;
  /** The new job's id. */
  rerun(job: string, resume: boolean): Promise<string>;
  saveModel(job: string, name: string): Promise<IModelVersion>;
  cluster(): Promise<ICluster>;
  /** Words that may stand in the place of the last of `words` after `submarine`. */
  complete(words: readonly string[], signal?: AbortSignal): Promise<string[]>;
  /** Address of TensorBoard for these jobs, under the server's base URL. */
  tensorboardUrl(jobs: readonly string[]): string;
}

/** A subscription; `dispose` ends it. */
export interface ISubscription {
  readonly isDisposed: boolean;
  dispose(): void;
}

/** What a log subscription hears; bytes come in order per task, attempt and stream, each once. */
export interface ILogListener {
  chunk(where: ILogPlace, offset: number, data: Uint8Array): void;
  skip(where: ILogPlace, from: number, to: number): void;
  behind(seconds: number | null): void;
  end(): void;
  error(message: string): void;
}

/** How a run of a workflow stood at one moment. */
export interface IRunPicture {
  /** Seconds since the epoch. */
  readonly time: number;
  /** Made by the server, without scripts. */
  readonly html: string;
}

/** The page's one websocket: subscriptions outlive broken connections. */
export interface IChannel {
  readonly connected: boolean;
  readonly connectedChanged: ISignal<IChannel, boolean>;
  jobs(listener: (rows: readonly IJobRow[], total: number, problem: string) => void): ISubscription;
  job(
    job: string,
    listener: (view: IJobView) => void,
    onError: (message: string) => void
  ): ISubscription;
  metrics(
    job: string,
    points: number,
    listener: (series: readonly ISeries[]) => void
  ): ISubscription;
  /** A run of a workflow; `url` of the Azkaban that runs it, empty: the server's machine does. */
  workflow(
    run: string,
    url: string,
    listener: (picture: IRunPicture) => void,
    onError: (message: string) => void
  ): ISubscription;
  /** Kernels in containers that this server starts just now. */
  starts(listener: (starts: readonly IKernelStart[]) => void): ISubscription;
  log(
    job: string,
    options: { tasks: readonly string[]; at?: Record<string, number>; tail?: number },
    listener: ILogListener
  ): ISubscription;
}

/** For tests of the channel. */
export type { ServerMessage };

/** What this page asked a job for. */
export interface ICancelRequest {
  /** Seconds since the epoch. */
  readonly since: number;
}

/** Jobs that this page has asked to end. */
export interface ICancels {
  /** Says of which job it is news. */
  readonly changed: ISignal<ICancels, string>;
  /** What was asked; null: nothing, or it failed. */
  of(job: string): ICancelRequest | null;
  /** Ask a job to end; rejects with `ApiError`, and then nothing was asked. */
  ask(job: string, why: string): Promise<void>;
  /** The job has ended. */
  forget(job: string): void;
}

/** Access to jobs through the server extension: what other extensions may use. */
export interface ISubmarine {
  readonly rest: IRest;
  readonly channel: IChannel;
  readonly cancels: ICancels;
  /** Whether the server extension is there and speaks our version; a sentence where it is not. */
  readonly ready: Promise<{ available: boolean; problem: string }>;
}

export const ISubmarine = new Token<ISubmarine>(
  'jupyter-submarine:ISubmarine',
  'Jobs of this user through the Submarine server extension: REST and live updates.'
);
