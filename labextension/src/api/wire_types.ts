/**
 * What is said on the websocket, of which a page has one: each message by its words.
 *
 * `id` is the page's number of a subscription. What the messages carry is defined beside.
 */

import type { IJobView, ISeries } from './job_types';
import type { IJobRow, IKernelStart } from './list_types';

export type ClientMessage =
  | { op: 'subscribe'; id: number; kind: 'jobs' }
  | { op: 'subscribe'; id: number; kind: 'job'; job: string }
  | { op: 'subscribe'; id: number; kind: 'metrics'; job: string; points: number }
  /** `url` of the Azkaban that runs it; empty: the server's machine does. */
  | { op: 'subscribe'; id: number; kind: 'workflow'; run: string; url: string }
  | { op: 'subscribe'; id: number; kind: 'starts' }
  | {
      op: 'subscribe';
      id: number;
      kind: 'log';
      job: string;
      /** Names of tasks, or `["*"]`. */
      tasks: string[];
      /** `worker:0/e1-a1/stdout` -> offset of the next byte wanted. */
      at: Record<string, number>;
      /** For a log that is not in `at`: begin so many bytes before its end; absent: at 0. */
      tail?: number;
    }
  | { op: 'unsubscribe'; id: number }
  /** Log data taken in, so that the server may send more: at most 1 MiB is under way. */
  | { op: 'ack'; id: number; bytes: number };

export type ServerMessage =
  | { type: 'hello'; version: string; api: number }
  /** `whole`: these are all rows that matter, else only those that changed. */
  | { id: number; type: 'jobs'; whole: boolean; rows: IJobRow[]; total: number; problem: string }
  | { id: number; type: 'job'; view: IJobView }
  | { id: number; type: 'metrics'; series: ISeries[]; whole: boolean }
  /** How a run stood at `time`, as HTML without scripts. */
  | { id: number; type: 'workflow'; time: number; html: string }
  | { id: number; type: 'starts'; starts: IKernelStart[] }
  /** `data` is base64 of the log's bytes from `offset`. */
  | {
      id: number;
      type: 'log';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr';
      offset: number;
      data: string;
    }
  /** Bytes from `offset` to `to` are not sent, because this page was slow; read them by REST. */
  | {
      id: number;
      type: 'skip';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr';
      offset: number;
      to: number;
    }
  /**
   * The live path is down; what is sent comes from the job directory, so many seconds behind.
   * `null`: the job is heard again.
   */
  | { id: number; type: 'behind'; seconds: number | null }
  /** Nothing more will come: the log is complete, or the job has ended. */
  | { id: number; type: 'end' }
  | { id: number; type: 'error'; error: string; fix: string; code: string };
