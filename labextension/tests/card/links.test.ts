import { expect, test } from 'vitest';
import { safeLink } from '../../src/card/link';

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  '//evil',
  '/api',
  '',
  'vbscript:x',
  'https://bank.example@evil.example/',
  'https://user:password@host/',
  'https://host/\u202egpj.exe',
  'https:\\\\host\\x',
  'https://host/a b',
  'https://host/\n',
  `https://host/${'x'.repeat(2000)}`,
  ' java\nscript:x'
])('rejects %j', url => {
  expect(safeLink(url)).toBeUndefined();
});

test('accepts web addresses', () => {
  expect(safeLink('https://rm.example:8090/proxy/application_1_1/')).toBe(
    'https://rm.example:8090/proxy/application_1_1/'
  );
});
