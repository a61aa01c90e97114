/** Reads the JSON of a workflow's run from a notebook's output, whoever wrote that notebook. */

/** MIME type of a workflow, and of a run of one. */
export const MIME_TYPE = 'application/vnd.submarine.workflow.v1+json';
const MOST = 500;

/** What an output says of a run. */
export interface IRunSnapshot {
  readonly run: string;
  /** Of the Azkaban that runs it; empty: a machine of the user's does. */
  readonly url: string;
  /** When it was drawn, in seconds since the epoch; 0: it does not say. */
  readonly time: number;
  /** Whether it had ended by then. */
  readonly ended: boolean;
}

/** The run in an output; null: it is a workflow that does not run, or no workflow. */
export function readSnapshot(data: unknown): IRunSnapshot | null {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return null;
  }
  const source = data as Record<string, unknown>;
  const { run, time, ended } = source;
  const url = source['url'] ?? '';
  if (typeof run !== 'string' || run === '' || run.length > MOST) {
    return null;
  }
  if (typeof url !== 'string' || url.length > MOST) {
    return null;
  }
  return {
    run,
    url,
    time: typeof time === 'number' && Number.isFinite(time) ? time : 0,
    ended: typeof ended === 'number'
  };
}

/** A form of an output as one text; notebooks may keep it as lines. */
export function textOf(data: unknown): string {
  const lines: unknown[] = Array.isArray(data) ? data : [data];
  return lines.filter(line => typeof line === 'string').join('');
}
