/**
 * A small line chart: own SVG, axes with units, a value under the pointer or by the arrow keys.
 *
 * For assistive technology it is a slider over the time of the measure, whose value is read out.
 */

import React from 'react';
import { figure } from '../card/words';
import { type ICurve, extent, nearest, strokes, ticks, timeTicks } from './scale';

const HEIGHT = 96;
const LEFT = 38;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 16;
/** Lines that get a colour of their own; the others share one. */
export const COLOURS = 6;

export interface IChartLine {
  name: string;
  curves: readonly ICurve[];
}

export interface IChartProps {
  title: string;
  lines: readonly IChartLine[];
  /** The measure begins at 0, as what is used does. */
  fromZero: boolean;
  /** What the numbers are; may be empty. */
  unit: string;
  /** A time since the beginning. */
  timeWords: (seconds: number) => string;
  /** More lines than colours: all in one colour. */
  faint: boolean;
}

/** A time and what every line says there. */
interface ICursor {
  time: number;
  values: { name: string; value: number; at: number; line: number }[];
}

/** One figure. */
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
  const spoken = `${props.timeWords(shown.time - first)}: ${spokenValues(shown, props.unit)}`;
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
          {cursor ? props.timeWords(cursor.time - first) : range(shown)}
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
              {props.timeWords(seconds)}
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
          <Tip
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

/** The class of the n-th line: colour and dashes. */
export function lineClass(n: number, faint: boolean): string {
  return faint
    ? 'jp-Submarine-line jp-mod-faint'
    : `jp-Submarine-line jp-Submarine-line${n % COLOURS}`;
}

function Strokes(props: {
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

/** One value, or from the lowest to the highest of all lines. */
function range(cursor: ICursor): string {
  const numbers = cursor.values.map(({ value }) => value);
  if (!numbers.length) {
    return '–';
  }
  const [low, high] = [figure(Math.min(...numbers)), figure(Math.max(...numbers))];
  return low === high ? low : `${low} – ${high}`;
}

function spokenValues(cursor: ICursor, unit: string): string {
  const { values } = cursor;
  const words =
    values.length > 1 && values.length <= COLOURS
      ? values.map(({ name, value }) => `${name} ${figure(value)}`).join(', ')
      : range(cursor);
  return unit ? `${words} ${unit}` : words;
}

/** The values beside the pointer, each with its line's name. */
function Tip(props: { cursor: ICursor; faint: boolean; left: boolean; x: number }) {
  const { cursor, faint, left, x } = props;
  const shown = cursor.values.slice(0, COLOURS);
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

/** What the lines say at a time; a line that has no point near it says nothing. */
function cursorAt(lines: readonly IChartLine[], time: number): ICursor {
  const values: ICursor['values'] = [];
  lines.forEach((line, n) => {
    const curve =
      line.curves.filter(one => (one.t[0] ?? Infinity) <= time).at(-1) ?? line.curves[0];
    if (!curve) {
      return;
    }
    const index = nearest(curve.t, time);
    const value = curve.v[index] ?? null;
    const at = curve.t[index];
    if (value !== null && at !== undefined && Math.abs(at - time) <= reach(curve)) {
      values.push({ name: line.name, value, at, line: n });
    }
  });
  return { time, values };
}

/** How far from a point it still speaks: some distances of two points. */
function reach(curve: ICurve): number {
  const span = (curve.t.at(-1) ?? 0) - (curve.t[0] ?? 0);
  return Math.max(5, (4 * span) / Math.max(curve.t.length - 1, 1));
}

function allTimes(lines: readonly IChartLine[]): number[] {
  const found = new Set(lines.flatMap(line => line.curves.flatMap(curve => [...curve.t])));
  return [...found].sort((a, b) => a - b);
}

function step(key: string, at: number, length: number): number | null {
  const far = Math.max(Math.round(length / 10), 1);
  const moves: Record<string, number> = {
    ArrowLeft: at - 1,
    ArrowDown: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at + 1,
    PageDown: at - far,
    PageUp: at + far,
    Home: 0,
    End: length - 1
  };
  const next = moves[key];
  return next === undefined ? null : Math.min(Math.max(next, 0), length - 1);
}

/** The width that there is; drawn anew when it changes. */
function useWidth(): [React.RefObject<HTMLDivElement>, number] {
  const box = React.useRef<HTMLDivElement>(null);
  const [width, setWidth] = React.useState(260);
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
