/**
 * Format durations, sizes, memory, numbers and times, in the same way as the HTML card of the
 * Python package.
 */

/** `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`, `3 d 04 h`; a hyphen if unknown. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) {
    return '-';
  }
  const bounded = Math.min(Math.max(seconds, 0), 1e9);
  if (bounded < 9.95) {
    return `${bounded.toFixed(1)} s`;
  }
  const whole = Math.round(bounded);
  if (whole < 60) {
    return `${whole} s`;
  }
  if (whole < 3600) {
    return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  }
  if (whole < 86400) {
    return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  }
  return `${Math.floor(whole / 86400)} d ${two(Math.floor((whole % 86400) / 3600))} h`;
}

/** A running duration: without tenths, so that it changes once a second. */
export function runningDuration(seconds: number): string {
  return seconds < 10 ? `${Math.floor(Math.max(seconds, 0))} s` : duration(Math.floor(seconds));
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** Bytes as `812 B`, `3.4 kB`, `1.2 MB` (powers of 1000). */
export function size(count: number): string {
  let value = Math.max(count, 0);
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (value < 999.5) {
      return unit === 'B' || value >= 99.5
        ? `${value.toFixed(0)} ${unit}`
        : `${value.toFixed(1)} ${unit}`;
    }
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

/** `812 MiB`, `1.2 GiB`. */
export function memory(mebibytes: number): string {
  return mebibytes >= 1024
    ? `${(mebibytes / 1024).toFixed(1).replace(/\.0$/, '')} GiB`
    : `${mebibytes.toFixed(0)} MiB`;
}

/** A fraction of one as `42 %`. */
export function percent(fraction: number): string {
  return `${Math.round(fraction * 100)} %`;
}

/** A number with four significant digits. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) {
    return '-';
  }
  const strength = Math.abs(value);
  if (strength !== 0 && (strength >= 1e6 || strength < 1e-3)) {
    return value.toExponential(2);
  }
  return String(Number(value.toPrecision(4)));
}

/** Local time of day, with the date if it is not today. */
export function formatTime(time: number | null, now: number = Date.now() / 1000): string {
  if (time === null || !Number.isFinite(time) || Math.abs(time) > 8.64e12) {
    return '-';
  }
  const at = new Date(time * 1000);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === new Date(now * 1000).toDateString()) {
    return clock;
  }
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}
