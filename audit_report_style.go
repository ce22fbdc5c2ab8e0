// This file holds the looks of a report: one style sheet for screens light and dark, narrow and wide, and for paper.
package main

// reportStyle has no url and no import, so that nothing is ever loaded. Colours keep a contrast of 4.5 to 1 and more against their ground
// (WCAG 2.2, 1.4.3).
const reportStyle = `
:root{--bg:#fff;--fg:#1b1f24;--quiet:#59636e;--rule:#dfe3e8;--soft:#f5f7f9;--done:#2b6a8f;--failed:#b3261e;--failed-soft:#f6d5d2;--refused:#8a5600;--open:#59636e;--good:#1f6f43}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e7eb;--quiet:#9aa5b1;--rule:#2d343c;--soft:#1c2127;--done:#74b4d8;--failed:#f28b82;--failed-soft:#5c2b28;--refused:#e2ad4e;--open:#9aa5b1;--good:#77c79a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
main,footer{max-width:1140px;margin:0 auto;padding:0 28px}
header{padding:36px 0 4px}
.eyebrow{margin:0;color:var(--quiet);font-size:13px}
h1{margin:2px 0 6px;font:600 26px/1.25 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{margin:0 0 10px;font-size:16px;font-weight:600}
header p{margin:0 0 10px}
header+section{margin-top:18px}
section{margin:34px 0}
.quiet,.none{color:var(--quiet)}
p.quiet{margin:6px 0;font-size:13px}
.badge{display:inline-block;border:1px solid;border-radius:99px;padding:1px 11px;font-size:13px;font-weight:600}
.badge.good{color:var(--good)}.badge.warn{color:var(--refused)}.badge.bad{color:var(--failed)}
.banner{margin:18px 0;border:1px solid var(--refused);border-left-width:5px;border-radius:4px;padding:12px 16px}
.banner.bad{border-color:var(--failed)}
.banner h2{margin:0 0 2px}.banner p{margin:0;overflow-wrap:anywhere}
.banner.bad h2{color:var(--failed)}
.sums{display:flex;flex-wrap:wrap;gap:16px 40px;margin:0;border-block:1px solid var(--rule);padding:16px 0}
.sums div{display:flex;flex-direction:column-reverse}
.sums dt{color:var(--quiet);font-size:13px}
.sums dd{margin:0;font-size:22px;line-height:1.2;font-weight:600}
.sums .none dd{font-weight:400}
.is-done{color:var(--done)}.is-failed{color:var(--failed)}.is-refused{color:var(--refused)}.is-open{color:var(--open)}
.box{overflow-x:auto;max-width:100%}
.box:focus-visible,summary:focus-visible{outline:2px solid var(--done);outline-offset:2px}
.legend{display:flex;flex-wrap:wrap;gap:4px 22px;margin:0 0 8px;font-size:13px;color:var(--quiet)}
.legend span{display:inline-flex;align-items:center}
.key{width:26px;height:14px;margin-right:6px;vertical-align:-2px;flex:none}
.chart{display:block;width:100%;min-width:820px;height:auto;font-family:inherit;fill:var(--fg)}
.chart text{unicode-bidi:isolate}
.tick{fill:var(--quiet)}
.grid{stroke:var(--rule)}
.link{fill:none;stroke:var(--quiet);stroke-width:1}
.wait{stroke:var(--quiet);stroke-dasharray:1.5 2.5;stroke-width:1.5}
.done{fill:var(--done)}
rect.failed{fill:var(--failed)}.failed-back{fill:var(--failed-soft)}
.failed-bar{stroke:var(--failed);stroke-width:1.2}
.refused{fill:var(--bg);stroke:var(--refused);stroke-width:1.8}
.open{fill:none;stroke:var(--open);stroke-width:1.4;stroke-dasharray:3 2.5}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:6px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{padding-left:0}
th:last-child,td:last-child{padding-right:0}
thead th{color:var(--quiet);font-weight:400;font-size:13px;padding-top:0}
tbody th{font-weight:500}
.n{text-align:right}
td.is-failed,td.is-refused{font-weight:600}
bdi,td,th,dd{unicode-bidi:isolate}
tbody th{min-width:150px}
tbody th>bdi{display:inline-block;min-width:150px;max-width:44ch;overflow-wrap:anywhere;white-space:normal}
.groups th:first-child{width:24%}
.rules{width:auto}.rules td{white-space:normal}
.calls tbody th{width:46%;min-width:250px;white-space:normal;overflow-wrap:anywhere}
.calls td.is-failed,.calls td.is-refused{font-weight:400}
.calls tbody tr:target{background:var(--soft)}
.unproven td,.unproven th{color:var(--quiet)}
summary{cursor:pointer}
.turn{color:var(--quiet)}
.d1{padding-left:22px}.d2{padding-left:40px}.d3{padding-left:58px}.d4{padding-left:76px}.d5{padding-left:94px}.d6{padding-left:112px}.d7{padding-left:130px}.d8{padding-left:148px}
.detail{margin:8px 0;font-size:13px;font-weight:400}
.detail div,.facts div{display:grid;grid-template-columns:minmax(110px,200px) minmax(0,1fr);gap:12px}
.detail div{grid-template-columns:80px minmax(0,1fr)}
.detail dt,.facts dt{color:var(--quiet)}
.detail dd,.facts dd{margin:0;overflow-wrap:anywhere}
.facts{margin:0;font-size:14px}
.facts div{padding:4px 0;border-bottom:1px solid var(--rule)}
details p{font-weight:400}
pre{margin:4px 0 10px;padding:10px 12px;max-height:340px;overflow:auto;background:var(--soft);border-radius:4px;font:12.5px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre-wrap;overflow-wrap:anywhere}
footer{padding-block:10px 36px;color:var(--quiet);font-size:13px}
@media (max-width:600px){main,footer{padding-inline:16px}header{padding-top:22px}h1{font-size:20px}.sums{display:grid;grid-template-columns:1fr 1fr;gap:14px}.sums dd{font-size:19px}.facts div{grid-template-columns:1fr;gap:0}}
@media print{:root{--bg:#fff;--fg:#000;--quiet:#444;--rule:#bbb;--soft:#f2f2f2;--done:#2b6a8f;--failed:#b3261e;--failed-soft:#f6d5d2;--refused:#7a4c00;--open:#444;--good:#1f6f43}body{font-size:11px}main,footer{max-width:none;padding:0}.box{overflow:visible}.chart{min-width:0}table{font-size:9.5px}th,td{padding:3px 5px;white-space:normal}.calls tbody th{min-width:0}pre{max-height:none}section{margin:20px 0}tr,.banner,.chart{break-inside:avoid}h2{break-after:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
`
