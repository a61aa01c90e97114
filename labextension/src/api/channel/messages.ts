/**
 * Messages of the websocket.
 *
 * `id` is the page's number of a subscription.
 */

import type { IJobView, ISeries, IJobRow, IKernelStart } from '../types';

export type ClientMessage =
  | { op: 'subscribe'; id: number; kind: 'jobs' }
  | { op: 'subscribe'; id: number; kind: 'job'; job: string }
  | { op: 'subscribe'; id: number; kind: 'metrics'; job: string; points: number }
  /**
   * `url` of the Azkaban server that runs it; empty if the run is on the Jupyter server's machine.
   */
  | { op: 'subscribe'; id: number; kind: 'workflow'; run: string; url: string }
  | { op: 'subscribe'; id: number; kind: 'starts' }
  | {
      op: 'subscribe';
      id: number;
      kind: 'log';
      job: string;
      /** Names of tasks, or `["*"]`. */
      tasks: string[];
      /** `worker:0/e1-a1/stdout` -> offset of the next expected byte. */
      at: Record<string, number>;
      /** Logs that are not in `at` start this number of bytes before their end; absent: at 0. */
      tail?: number;
    }
  | { op: 'unsubscribe'; id: number }
  /** Acknowledge log data; at most 1 MiB is unacknowledged. */
  | { op: 'ack'; id: number; bytes: number };

export type ServerMessage =
  | { type: 'hello'; version: string; api: number }
  /** `whole`: the complete list; otherwise only changed rows. */
  | { id: number; type: 'jobs'; whole: boolean; rows: IJobRow[]; total: number; problem: string }
  | { id: number; type: 'job'; view: IJobView }
  | { id: number; type: 'metrics'; series: ISeries[]; whole: boolean }
  /** The run at `time`, as HTML without scripts. */
  | { id: number; type: 'workflow'; time: number; html: string }
  | { id: number; type: 'starts'; starts: IKernelStart[] }
  /** `data` is the base64 of the bytes from `offset`. */
  | {
      id: number;
      type: 'log';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr' | 'helper';
      offset: number;
      data: string;
    }
  /**
   * Bytes from `offset` to `to` are not sent because the page was slow; they can be read by REST.
   */
  | {
      id: number;
      type: 'skip';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr' | 'helper';
      offset: number;
      to: number;
    }
  /**
   * There is no live connection to the job: the data comes from the job directory, with this delay.
   * `null`: the live connection is back.
   */
  | { id: number; type: 'behind'; seconds: number | null }
  /** End of the subscription: the log is complete, or the job has ended. */
  | { id: number; type: 'end' }
  | { id: number; type: 'error'; error: string; fix: string; code: string };
