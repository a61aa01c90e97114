/**
 * One clock for all that ticks on a page, so that cards and the panel show a job's duration alike.
 *
 * It ticks when the second of this machine's clock changes; it stops while there is no listener.
 */

import React from 'react';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Seconds since the epoch, whole: the same for all that is drawn in one second. */
export function secondNow(): number {
  return Math.floor(Date.now() / 1000);
}

/** Calls `listener` at the beginning of every second, until the answer is called. */
export function everySecond(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= wait();
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearTimeout(timer);
      timer = undefined;
    }
  };
}

function wait(): ReturnType<typeof setTimeout> {
  return setTimeout(tick, 1000 - (Date.now() % 1000));
}

function tick(): void {
  timer = wait();
  for (const listener of [...listeners]) {
    listener();
  }
}

const still = (): (() => void) => () => undefined;

/** Seconds since the epoch; renewed every second while `going`. */
export function useNow(going: boolean): number {
  const [at] = React.useState(secondNow);
  const ticked = React.useSyncExternalStore(
    going ? everySecond : still,
    going ? secondNow : () => at,
    going ? secondNow : () => at
  );
  return Math.max(at, ticked);
}
