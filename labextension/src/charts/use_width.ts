/** Width of a React element. */

import React from 'react';

/** Width before the first measurement. */
const FIRST = 260;

/** The current width of the element with the returned ref. */
export function useWidth(): [React.RefObject<HTMLDivElement>, number] {
  const box = React.useRef<HTMLDivElement>(null);
  const [width, setWidth] = React.useState(FIRST);
  React.useLayoutEffect(() => {
    const node = box.current;
    if (!node || typeof ResizeObserver === 'undefined') {
      return;
    }
    const observer = new ResizeObserver(([entry]) => {
      const found = Math.round(entry?.contentRect.width ?? 0);
      if (found > 0) {
        setWidth(found);
      }
    });
    observer.observe(node);
    return () => {
      observer.disconnect();
    };
  }, []);
  return [box, width];
}
