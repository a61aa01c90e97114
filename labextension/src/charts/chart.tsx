/**
 * A small line chart in SVG: axes with units, values at the pointer or selected by the arrow keys.
 *
 * For assistive technology, it is a slider over time whose value text contains the values.
 */

import React from 'react';
import { figure } from '../format';
import { allTimes, cursorAt, type IChartLine, range, spokenValues, step } from './cursor';
import { extent, nearest, ticks, timeTicks } from './scale';
import { Strokes, Tooltip, lineClass } from './lines';

const HEIGHT = 96;
const LEFT = 38;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 16;

export interface IChartProps {
  title: string;
  lines: readonly IChartLine[];
  /** The value axis starts at 0. */
  fromZero: boolean;
  /** Unit of the values; may be empty. */
  unit: string;
  /** Formats a time since the start. */
  formatTime: (seconds: number) => string;
  /** More lines than colors: draw all in one color. */
  faint: boolean;
}

export function Chart(props: IChartProps): React.ReactElement | null {
  const { title, lines } = props;
  const [box, width] = useWidth();
  const times = React.useMemo(() => allTimes(lines), [lines]);
  const [at, setAt] = React.useState<number | null>(null);
  const first = times[0];
  const last = times.at(-1);
  const bounds = extent(lines.flatMap(line => line.curves.flatMap(curve => [...curve.v])));
  if (first === undefined || last === undefined || !bounds) {
    return null;
  }
  const grid = ticks(props.fromZero ? 0 : bounds[0], bounds[1], 3);
  const low = grid[0] ?? 0;
  const high = grid.at(-1) ?? 1;
  const span = Math.max(last - first, 1);
  const x = (time: number): number => LEFT + ((time - first) / span) * (width - LEFT - RIGHT);
  const y = (value: number): number =>
    TOP + (1 - (value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const cursor = at === null ? null : cursorAt(lines, times[Math.min(at, times.length - 1)] ?? 0);
  const shown = cursor ?? cursorAt(lines, last);
  const spoken = `${props.formatTime(shown.time - first)}: ${spokenValues(shown, props.unit)}`;
  const move = (event: React.PointerEvent): void => {
    const left = event.currentTarget.getBoundingClientRect().left;
    const share = (event.clientX - left - LEFT) / Math.max(width - LEFT - RIGHT, 1);
    setAt(nearest(times, first + share * span));
  };
  const press = (event: React.KeyboardEvent): void => {
    const next = step(event.key, at ?? times.length - 1, times.length);
    if (next !== null) {
      event.preventDefault();
      event.stopPropagation();
      setAt(next);
    }
  };
  return (
    <figure className="jp-Submarine-chart">
      <figcaption>
        <span className="jp-Submarine-chartTitle" title={title}>
          {title}
        </span>
        {props.unit && <span className="jp-Submarine-chartUnit">{props.unit}</span>}
        <span className="jp-Submarine-chartValue">
          {cursor ? props.formatTime(cursor.time - first) : range(shown)}
        </span>
      </figcaption>
      <div
        ref={box}
        className="jp-Submarine-chartBox"
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-orientation="horizontal"
        aria-valuemin={0}
        aria-valuemax={Math.round(last - first)}
        aria-valuenow={Math.round(shown.time - first)}
        aria-valuetext={spoken}
        data-lm-suppress-shortcuts="true"
        onPointerMove={move}
        onPointerLeave={() => {
          setAt(null);
        }}
        onBlur={() => {
          setAt(null);
        }}
        onKeyDown={press}
      >
        <svg width={width} height={HEIGHT} aria-hidden="true" focusable="false">
          {grid.map(value => (
            <g key={value} className="jp-Submarine-chartGrid">
              <line x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
              <text x={LEFT - 5} y={y(value) + 3} textAnchor="end">
                {figure(value)}
              </text>
            </g>
          ))}
          {timeTicks(span, width > 320 ? 5 : 3).map(seconds => (
            <text
              key={seconds}
              className="jp-Submarine-chartTime"
              x={x(first + seconds)}
              y={HEIGHT - 3}
              textAnchor={seconds === 0 ? 'start' : seconds > span * 0.92 ? 'end' : 'middle'}
            >
              {props.formatTime(seconds)}
            </text>
          ))}
          {lines.map((line, n) => (
            <g key={line.name} className={lineClass(n, props.faint)}>
              <Strokes curves={line.curves} x={x} y={y} />
            </g>
          ))}
          {cursor && (
            <line
              className="jp-Submarine-chartCursor"
              x1={x(cursor.time)}
              x2={x(cursor.time)}
              y1={TOP}
              y2={HEIGHT - BOTTOM}
            />
          )}
          {cursor?.values.map(({ name, value, at: time, line }) => (
            <g key={name} className={lineClass(line, props.faint)}>
              <circle cx={x(time)} cy={y(value)} r={2.5} />
            </g>
          ))}
        </svg>
        {cursor && (
          <Tooltip
            cursor={cursor}
            faint={props.faint}
            left={x(cursor.time) > width / 2}
            x={x(cursor.time)}
          />
        )}
      </div>
    </figure>
  );
}

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
