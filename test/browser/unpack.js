// Unpacks the Chromium of the npm package @sparticuz/chromium, with the libraries that it needs, into the folder named by $TMPDIR. It
// runs in its own process, because the package reads the environment when it is imported, and changes it.
//
//   TMPDIR=FOLDER AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x node test/browser/unpack.js
//
// AWS_EXECUTION_ENV makes the package unpack its own libraries (libnss3 and others), even outside of AWS.
// `String(…)` hides the package from the compiler: types are also checked where it is not installed.
const PACKAGE = String('@sparticuz/chromium');
const { default: chromium } = await import(PACKAGE);

await chromium.executablePath();
