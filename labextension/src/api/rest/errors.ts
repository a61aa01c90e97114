/** Errors of requests to the server. */

import type { IErrorBody } from '../types';

/** Error codes that are set by the front end. */
export const ABSENT = 'absent';
export const UNREACHABLE = 'unreachable';

/** A failed request; `message` contains the error and the fix. */
export class ApiError extends Error {
  constructor(
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    readonly body: IErrorBody
  ) {
    super(body.fix ? `${body.error} ${body.fix}` : body.error);
    this.name = 'ApiError';
  }

  /** Error code of the server; `absent` if the server extension is not available. */
  get code(): string {
    return this.body.code;
  }
}

/** The message of any thrown value. */
export function errorMessage(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

/** Whether a request was aborted by its caller. */
export function isAbort(problem: unknown): boolean {
  return (
    typeof problem === 'object' &&
    problem !== null &&
    'name' in problem &&
    problem.name === 'AbortError'
  );
}

/** The error body of a JSON response, from the server extension or from jupyter-server. */
export function errorBody(answer: unknown): IErrorBody | undefined {
  if (typeof answer !== 'object' || answer === null) {
    return undefined;
  }
  const fields = answer as Record<string, unknown>;
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
  const error = text('error') || text('message');
  return error ? { error, fix: text('fix'), code: text('code') } : undefined;
}
