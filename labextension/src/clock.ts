/**
 * One clock for all parts of a page, so that cards and the panel show the same durations.
 *
 * It ticks when the second of the local clock changes, and stops while it has no listeners.
 */

import React from 'react';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Whole seconds since the epoch. */
export function secondNow(): number {
  return Math.floor(Date.now() / 1000);
}

/** Call `listener` at the start of every second; returns a function that stops it. */
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

const noSubscription = (): (() => void) => () => undefined;

/** Seconds since the epoch, updated every second while `running`. */
export function useNow(running: boolean): number {
  const [initial] = React.useState(secondNow);
  const ticked = React.useSyncExternalStore(
    running ? everySecond : noSubscription,
    running ? secondNow : () => initial,
    running ? secondNow : () => initial
  );
  return Math.max(initial, ticked);
}
