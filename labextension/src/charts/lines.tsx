/** SVG lines of a chart, and the box with the values at the pointer. */

import React from 'react';
import { figure } from '../format';
import { type ICursor, MAX_LISTED, range } from './cursor';
import { type ICurve, strokes } from './scale';

/** Number of lines with their own color. */
export const COLORS = 6;

/** CSS class of the n-th line: color and dashes. */
export function lineClass(n: number, faint: boolean): string {
  return faint
    ? 'jp-Submarine-line jp-mod-faint'
    : `jp-Submarine-line jp-Submarine-line${n % COLORS}`;
}

/** The polylines of one line; a single point is drawn as a dot. */
export function Strokes(props: {
  curves: readonly ICurve[];
  x: (time: number) => number;
  y: (value: number) => number;
}): React.ReactElement {
  const { curves, x, y } = props;
  const found = curves.flatMap(curve => strokes(curve, x, y));
  return (
    <>
      {found.map((points, n) => {
        const [cx = '0', cy = '0'] = points.split(',');
        return points.includes(' ') ? (
          <polyline key={n} points={points} />
        ) : (
          <circle key={n} cx={cx} cy={cy} r={1.8} />
        );
      })}
    </>
  );
}

/** The values at the pointer with the names of their lines. */
export function Tooltip(props: { cursor: ICursor; faint: boolean; left: boolean; x: number }) {
  const { cursor, faint, left, x } = props;
  const shown = cursor.values.slice(0, MAX_LISTED);
  return (
    <div
      className="jp-Submarine-chartTip"
      aria-hidden="true"
      style={left ? { right: `calc(100% - ${x - 6}px)` } : { left: `${x + 6}px` }}
    >
      {shown.map(({ name, value, line }) => (
        <div key={name}>
          <svg width="14" height="6" className={lineClass(line, faint)}>
            <polyline points="0,3 14,3" />
          </svg>
          {cursor.values.length > 1 && <span>{name}</span>} <b>{figure(value)}</b>
        </div>
      ))}
      {cursor.values.length > shown.length && <div>… {range(cursor)}</div>}
    </div>
  );
}
