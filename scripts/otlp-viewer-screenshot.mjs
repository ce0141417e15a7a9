// Looks at the viewer as a person would: opens one request's trace, one of its participation spans, and from that span's link
// the batch step. For scripts/otlp-viewer-screenshot, which starts what this needs.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [page, sentFile, into] = process.argv.slice(2);
const { chromium } = createRequire(`${process.env.LINEAGE_VIEWER}/`)('playwright-core');

function ensure(condition, what) {
  if (!condition) throw new Error(what);
}

// What the viewer kept: every span that was sent, and every batch step's links to its members.
const { traces } = await (await fetch(`${page}/v1/traces`)).json();
const spans = traces.flatMap((trace) => trace.spans);
const sent = readFileSync(sentFile, 'utf8').trimEnd().split('\n');
const kept = new Set(spans.map((span) => `${span.traceId}\t${span.spanId}`));
ensure(kept.size === sent.length && sent.every((id) => kept.has(id)), `the viewer has ${kept.size} of ${sent.length} spans`);
const of = (kind) => spans.filter((span) => span.attributes['lineage.span'] === kind);
for (const batch of of('batch')) {
  const members = batch.links.filter((link) => link.attributes?.['lineage.link'] === 'member').length;
  ensure(members === batch.attributes['lineage.batch.members'], `a batch step of ${batch.attributes['lineage.batch.members']} members has ${members} links`);
}
for (const part of of('participation')) ensure(part.links.length === 1, `a participation has ${part.links.length} links`);
console.log(`${spans.length} spans in ${traces.length} traces: ${of('request').length} requests, ${of('batch').length} batch steps, ` +
  `${of('participation').length} participations, ${of('operation').length} operations; every link is there`);

const browser = await chromium.launch({ executablePath: process.env.LINEAGE_BROWSER, args: ['--no-sandbox'] });
try {
  const tab = await browser.newPage({ viewport: { width: 1500, height: 1150 } });
  const broken = [];
  tab.on('pageerror', (error) => broken.push(String(error)));
  await tab.goto(page);
  const text = (wanted) => tab.locator(`text=${wanted}`);
  const settle = () => tab.waitForTimeout(1000);

  // One request among others: the third that the list shows.
  await text('"generate"').nth(2).click();
  await settle();
  await text('"batch participation"').nth(2).click();
  await settle();
  // In the panel: attributes and links, without the section on times, which are in the picture.
  for (const section of ['/^Timing/', '/^Links \\(/']) await text(section).first().click();
  await settle();
  await tab.screenshot({ path: `${into}/viewer.png` });

  await tab.locator('button[title="Open linked span in the Traces waterfall"]').first().click();
  await settle();
  await text('/^Attributes \\(/').first().click();
  await settle();
  await tab.screenshot({ path: `${into}/viewer-batch.png` });
  ensure(broken.length === 0, `the page is broken: ${broken}`);
} finally {
  await browser.close();
}
