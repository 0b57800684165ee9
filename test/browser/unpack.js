// Unpacks the Chromium of the npm package @sparticuz/chromium, with the libraries that it needs, into the folder named by $TMPDIR. In a
// process of its own: the package changes the environment, and looks at it when it is imported.
//
//   TMPDIR=FOLDER AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x node test/browser/unpack.js
//
// The variable makes the package bring its own libraries (libnss3 and others), also where it is not run by AWS.
// As a value: the types of a checkout are checked without this package, too.
const PACKAGE = String('@sparticuz/chromium');
const { default: chromium } = await import(PACKAGE);

await chromium.executablePath();
