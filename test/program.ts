import { fileURLToPath } from 'node:url';

/**
 * The executable that tests start: the bundled one, as in the published package, which scripts/test-program.js has made. Where that did
 * not run, the checkout's own.
 */
export const PROGRAM =
  process.env.THROUGHLINE_TEST_PROGRAM ?? fileURLToPath(new URL('../bin/throughline.js', import.meta.url));
