/**
 * What the server extension answers about logs: which there are, and what a search finds in one.
 *
 * The same words as in docs/server.md. Everything in here came from a cluster, a container or a
 * notebook: it is text to be shown, never markup, never a place to go to without `safeLink`.
 */

export interface ILogInfo {
  task: string;
  attempt: string;
  stream: 'stdout' | 'stderr';
  /** Bytes so far. */
  length: number;
}

/**
 * When a log had which length: `GET jobs/ID/log/times?task=&attempt=&stream=&offset=&limit=`, of the
 * bytes from `offset` on (absent: 0), `limit` of them (absent: all).
 */
export interface ILogTimes {
  /** The attempt that was meant: the newest where none is named. */
  attempt: string;
  /**
   * `[offset, time]` in order, at most 2,000: all bytes before `offset` had been written at `time`.
   * So a byte's time is that of the first pair whose offset is larger; behind the last pair: unknown.
   */
  times: [number, number][];
  /** From the task's own index, which looks every second; else from when pieces were stored. */
  exact: boolean;
}

export interface ISearchHit {
  /** Byte offset of the line's beginning, and of the match in the log. */
  line_offset: number;
  offset: number;
  /** Bytes of the match. */
  length: number;
  /** The line, decoded, at most 2,000 characters. */
  text: string;
}

/** Which log is meant. */
export interface ILogPlace {
  task: string;
  attempt: string;
  stream: string;
}

/** What is looked for in a log; `from` is a byte offset, `backward` goes towards 0. */
export interface ILogQuery {
  text: string;
  regex: boolean;
  matchCase: boolean;
  from: number;
  backward: boolean;
  limit: number;
}
