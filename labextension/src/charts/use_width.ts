/** How wide an element of React is, as it changes. */

import React from 'react';

/** What it is taken for before it is measured. */
const FIRST = 260;

/** The width that there is; drawn anew when it changes. */
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
