import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: './tsconfig.eslint.json' } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Text from a job is never markup.' },
        { property: 'outerHTML', message: 'Text from a job is never markup.' },
        { property: 'insertAdjacentHTML', message: 'Text from a job is never markup.' }
      ],
      eqeqeq: 'error'
    }
  }
);
