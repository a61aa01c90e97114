/** One clock for all cards of a page; it stands still while nobody looks at it. */

import React from 'react';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now() / 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, 1000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function tick(): void {
  now = Date.now() / 1000;
  for (const listener of [...listeners]) {
    listener();
  }
}

const still = (): (() => void) => () => undefined;

/** Seconds since the epoch; renewed every second while `going`. */
export function useNow(going: boolean): number {
  const [at] = React.useState(() => Date.now() / 1000);
  const read = (): number => now;
  const ticked = React.useSyncExternalStore(going ? subscribe : still, read, read);
  return Math.max(at, ticked);
}
