/** Public interfaces of the extension, for its plugins and for other extensions. */

import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type {
  IJobView,
  IModelVersion,
  ISeries,
  ICluster,
  IHealth,
  IJobRow,
  IJobsPage,
  IKernelStart,
  ILineage,
  ILogInfo,
  ILogPage,
  ILogPageQuery,
  ILogPlace,
  ILogQuery,
  ILogTimes,
  ISearchHit
} from './api/types';
import type { ITask, State } from './api/record';
import type { ServerMessage } from './api/channel/messages';

/** MIME type of a job in notebook outputs. */
export const MIME_TYPE = 'application/vnd.submarine.job.v1+json';

/** Command ids. Arguments are `{ job: string }` unless stated otherwise. */
export namespace CommandIDs {
  /** Open the log view as a tab; also `task?: string`. */
  export const logs = 'submarine:logs';
  /** Open a job card as a tab. */
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
  /** Show the jobs panel. */
  export const jobs = 'submarine:jobs';
}

/** REST interface; every method rejects with `ApiError`. */
export interface IRest {
  health(): Promise<IHealth>;
  jobs(options?: {
    states?: readonly State[];
    text?: string;
    limit?: number;
    after?: string;
  }): Promise<IJobsPage>;
  job(job: string): Promise<IJobView>;
  /** A page of the job's tasks; a view contains only some of them. */
  tasks(job: string, offset: number, limit: number): Promise<{ tasks: ITask[]; total: number }>;
  metrics(job: string, points?: number): Promise<ISeries[]>;
  models(job: string): Promise<IModelVersion[]>;
  /** Where a saved version comes from; empty: the final model. */
  lineage(job: string, version: string): Promise<ILineage>;
  logs(job: string): Promise<ILogInfo[]>;
  /**
   * Bytes from `offset` (negative: from the end) with their actual offset and the length of the
   * log.
   */
  log(
    job: string,
    where: ILogPlace,
    offset: number,
    limit: number,
    signal?: AbortSignal
  ): Promise<{ data: Uint8Array; offset: number; length: number }>;
  /** Write times of these bytes of a log. */
  logTimes(job: string, where: ILogPlace, offset: number, limit: number): Promise<ILogTimes>;
  /** Bytes of several logs in order of time. */
  logPage(job: string, query: ILogPageQuery, signal?: AbortSignal): Promise<ILogPage>;
  /** Search a log; `onHit` is called for each hit as it arrives. */
  search(
    job: string,
    where: ILogPlace,
    query: ILogQuery,
    onHit: (hit: ISearchHit) => void,
    signal?: AbortSignal
  ): Promise<{ next: number | null; scanned: number }>;
  /** URL for downloading a log as a file. */
  downloadUrl(job: string, where: ILogPlace): string;
  script(job: string): Promise<string>;
  cancel(job: string, why: string): Promise<void>;
  /** Returns the id of the new job. */
  rerun(job: string, resume: boolean): Promise<string>;
  saveModel(job: string, name: string): Promise<IModelVersion>;
  cluster(): Promise<ICluster>;
  /** Completions of the last word of `words`, which follow `submarine`. */
  complete(words: readonly string[], signal?: AbortSignal): Promise<string[]>;
  /** URL of TensorBoard for these jobs, below the server's base URL. */
  tensorboardUrl(jobs: readonly string[]): string;
}

/** A subscription; `dispose` ends it. */
export interface ISubscription {
  readonly isDisposed: boolean;
  dispose(): void;
}

/**
 * Listener of a log subscription; bytes arrive in order per task, attempt and stream, each once.
 */
export interface ILogListener {
  chunk(where: ILogPlace, offset: number, data: Uint8Array): void;
  skip(where: ILogPlace, from: number, to: number): void;
  behind(seconds: number | null): void;
  end(): void;
  error(message: string): void;
}

/** A workflow run at one time. */
export interface IRunPicture {
  /** Seconds since the epoch. */
  readonly time: number;
  /** Created by the server, without scripts. */
  readonly html: string;
}

/** The websocket of the page; subscriptions survive lost connections. */
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
  /**
   * Watch a workflow run; `url` of the Azkaban server that runs it, empty for the server's machine.
   */
  workflow(
    run: string,
    url: string,
    listener: (picture: IRunPicture) => void,
    onError: (message: string) => void
  ): ISubscription;
  /** Watch the kernels that this server is starting in containers. */
  starts(listener: (starts: readonly IKernelStart[]) => void): ISubscription;
  log(
    job: string,
    options: { tasks: readonly string[]; at?: Record<string, number>; tail?: number },
    listener: ILogListener
  ): ISubscription;
}

/** For tests of the channel. */
export type { ServerMessage };

/** A cancel request of this page. */
export interface ICancelRequest {
  /** Seconds since the epoch. */
  readonly since: number;
}

/** Cancel requests of this page. */
export interface ICancelRequests {
  /** Emitted with the job id when its request changes. */
  readonly changed: ISignal<ICancelRequests, string>;
  /** The request for a job; null if there is none or it failed. */
  get(job: string): ICancelRequest | null;
  /** Request the cancellation of a job; rejects with `ApiError` and then keeps no request. */
  request(job: string, why: string): Promise<void>;
  /** Remove the request of a job that has ended. */
  remove(job: string): void;
}

/** Access to jobs through the server extension, for use by other extensions. */
export interface ISubmarine {
  readonly rest: IRest;
  readonly channel: IChannel;
  readonly cancels: ICancelRequests;
  /** Whether the server extension is available and compatible, with the reason if not. */
  readonly ready: Promise<{ available: boolean; problem: string }>;
}

export const ISubmarine = new Token<ISubmarine>(
  'jupyter-submarine:ISubmarine',
  'Jobs of this user through the Submarine server extension: REST and live updates.'
);
