import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IJobRow } from '../../src/api/types';
import { TypeAhead } from '../../src/panel/type_ahead';

const row = (name: string, job_id = name): IJobRow => ({ name, job_id }) as IJobRow;
const ROWS = [row('digits'), row('Deep'), row('', 'dense-1'), row('other')];

describe('a typed word', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('matches names and ids in any case', () => {
    const word = new TypeAhead();
    expect(word.find('D', ROWS, -1)).toBe(1);
    expect(word.find('e', ROWS, 1)).toBe(1);
    expect(word.find('n', ROWS, 1)).toBe(2);
    expect(word.find('x', ROWS, 2)).toBe(-1);
  });

  it('is searched after the focused row and then from the start', () => {
    const word = new TypeAhead();
    expect(word.find('d', ROWS, 2)).toBe(0);
  });

  it('starts again after a pause', () => {
    const word = new TypeAhead();
    word.find('d', ROWS, 0);
    expect(word.empty).toBe(false);
    vi.advanceTimersByTime(1000);
    expect(word.empty).toBe(true);
    expect(word.find('o', ROWS, 0)).toBe(3);
    expect(word.find('o', [], 0)).toBe(-1);
  });
});
