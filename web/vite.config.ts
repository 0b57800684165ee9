import { fileURLToPath } from 'node:url';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The page as `throughline serve` serves it, below `dist/page`. Nothing is inlined: its Content-Security-Policy allows no data in scripts
// and styles.
export default defineConfig({
  root: at('.'),
  // Vite makes the styles small as well. Tailwind's own step warns of ::highlight(), which it does not know.
  plugins: [react(), tailwind({ optimize: false })],
  resolve: { alias: { 'throughline/client': at('../src/client.ts') } },
  build: {
    outDir: at('../dist/page'),
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
