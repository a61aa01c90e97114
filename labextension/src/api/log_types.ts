/**
 * Types of the server's responses about logs: the list of logs and search results.
 *
 * Documented in docs/server.md. All values come from a cluster, a container or a notebook: show
 * them as text, never as markup, and follow addresses only through `safeLink`.
 */

export interface ILogInfo {
  task: string;
  attempt: string;
  stream: 'stdout' | 'stderr';
  /** Current length in bytes. */
  length: number;
}

/**
 * Write times of a log: `GET jobs/ID/log/times?task=&attempt=&stream=&offset=&limit=`, for `limit`
 * bytes (default: all) from `offset` (default: 0).
 */
export interface ILogTimes {
  /** The attempt; the newest one if the request does not name one. */
  attempt: string;
  /**
   * `[offset, time]` in order, at most 2,000: all bytes before `offset` were written by `time`. The
   * time of a byte is that of the first pair with a larger offset; it is unknown after the last
   * pair.
   */
  times: [number, number][];
  /**
   * True if the times come from the task's own index (1 s resolution), false if from the upload of
   * segments.
   */
  exact: boolean;
}

export interface ISearchHit {
  /** Byte offsets of the line and of the match in the log. */
  line_offset: number;
  offset: number;
  /** Length of the match in bytes. */
  length: number;
  /** The line, decoded, at most 2,000 characters. */
  text: string;
}

/** Identifies a log. */
export interface ILogPlace {
  task: string;
  attempt: string;
  stream: string;
}

/** A search in a log; `from` is a byte offset, `backward` searches towards 0. */
export interface ILogQuery {
  text: string;
  regex: boolean;
  matchCase: boolean;
  from: number;
  backward: boolean;
  limit: number;
}
