/** Parse the JSON of a workflow run from a notebook output. The notebook is not trusted. */

/** MIME type of a workflow and of a run. */
export const MIME_TYPE = 'application/vnd.submarine.workflow.v1+json';
const MAX_LENGTH = 500;

/** A workflow run in an output. */
export interface IRunSnapshot {
  readonly run: string;
  /** URL of the Azkaban server that runs it; empty for the local machine. */
  readonly url: string;
  /** Time of the display in seconds since the epoch; 0 if missing. */
  readonly time: number;
  /** Whether the run had ended at that time. */
  readonly ended: boolean;
}

/** The run in an output; null if the workflow was not started or the data is invalid. */
export function readSnapshot(data: unknown): IRunSnapshot | null {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return null;
  }
  const source = data as Record<string, unknown>;
  const { run, time, ended } = source;
  const url = source['url'] ?? '';
  if (typeof run !== 'string' || run === '' || run.length > MAX_LENGTH) {
    return null;
  }
  if (typeof url !== 'string' || url.length > MAX_LENGTH) {
    return null;
  }
  return {
    run,
    url,
    time: typeof time === 'number' && Number.isFinite(time) ? time : 0,
    ended: typeof ended === 'number'
  };
}

/** One form of an output as text; notebooks may store it as lines. */
export function textOf(data: unknown): string {
  const lines: unknown[] = Array.isArray(data) ? data : [data];
  return lines.filter(line => typeof line === 'string').join('');
}
