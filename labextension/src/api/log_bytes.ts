/** Names and positions of logs: each byte of a log is taken once and in order. */

import type { ILogPlace } from './types';

/** `worker:0/e1-a1/stdout`, as in positions of the server's interface. */
export function keyOf({ task, attempt, stream }: ILogPlace): string {
  return `${task}/${attempt}/${stream}`;
}

/** The part of `data` that begins at `offset` and was not taken yet; `next` is the next offset. */
export function untaken(next: number, offset: number, data: Uint8Array): Uint8Array {
  return data.subarray(Math.max(0, next - offset));
}

export function decodeBase64(data: string): Uint8Array {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) {
    bytes[index] = text.charCodeAt(index);
  }
  return bytes;
}
