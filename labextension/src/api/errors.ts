/** What the server refused or could not do, in its own words. */

import type { IErrorBody } from './list_types';

/** Codes that are not the server extension's own. */
export const ABSENT = 'absent';
export const UNREACHABLE = 'unreachable';

/** A request that failed; `message` is the whole sentence with what to do. */
export class ApiError extends Error {
  constructor(
    /** HTTP status; 0 where no answer came. */
    readonly status: number,
    readonly body: IErrorBody
  ) {
    super(body.fix ? `${body.error} ${body.fix}` : body.error);
    this.name = 'ApiError';
  }

  /** The server's word for what is wrong; `absent` where the server extension is not there. */
  get code(): string {
    return this.body.code;
  }
}

/** The sentence to show for anything that was thrown. */
export function sentence(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

/** Whether a request ended because its caller gave it up. */
export function isAbort(problem: unknown): boolean {
  return (
    typeof problem === 'object' &&
    problem !== null &&
    'name' in problem &&
    problem.name === 'AbortError'
  );
}

/** The error body in a JSON answer: ours, or what jupyter-server itself says; else nothing. */
export function errorBody(answer: unknown): IErrorBody | undefined {
  if (typeof answer !== 'object' || answer === null) {
    return undefined;
  }
  const said = answer as Record<string, unknown>;
  const text = (name: string): string => (typeof said[name] === 'string' ? said[name] : '');
  const error = text('error') || text('message');
  return error ? { error, fix: text('fix'), code: text('code') } : undefined;
}
