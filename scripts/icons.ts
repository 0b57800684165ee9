// `npm run icons`: draws the icons of the installed page from the mark, web/src/icon.svg, into web/src/icons. Run it when the mark changes.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launchChromium } from '../test/browser/chromium.ts';

const web = fileURLToPath(new URL('../web/src', import.meta.url));

/** Name, side in pixels, and how much of the side the mark takes. Systems cut a mask out of the maskable one. */
const ICONS = [
  ['icon-192', 192, 0.72],
  ['icon-512', 512, 0.72],
  ['icon-maskable', 512, 0.5],
  ['apple-touch', 180, 0.66],
] as const;

const browser = await launchChromium();
if (typeof browser === 'string') {
  console.error(`icons: ${browser}`);
  process.exit(1);
}
mkdirSync(join(web, 'icons'), { recursive: true });
const page = await browser.newPage();
const mark = readFileSync(join(web, 'icon.svg')).toString('base64');
for (const [name, side, share] of ICONS) {
  await page.setViewportSize({ width: side, height: side });
  const size = Math.round(side * share);
  await page.setContent(
    `<body style="margin:0;height:100vh;display:grid;place-items:center;background:#131416"><img width="${size}" height="${size}" src="data:image/svg+xml;base64,${mark}">`,
  );
  await page.evaluate('document.images[0].decode()');
  await page.screenshot({ path: join(web, 'icons', `${name}.png`) });
}
await browser.close();
