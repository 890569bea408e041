"""The look of the HTML page: colours for light and dark, the few lines of script for tabs and copying."""

from __future__ import annotations

CSS = """
.drevo{--ink:#1b2430;--soft:#5b6776;--line:#e3e8ee;--paper:#fff;--back:#f6f8fa;--mark:#0b6e6e;
color:var(--ink);background:var(--paper);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media(prefers-color-scheme:dark){.drevo{--ink:#e3e8ee;--soft:#93a1b1;--line:#2b3440;--paper:#12171d;--back:#1a2129;
--mark:#5cc8c2}}
body.drevo{margin:0;display:grid;grid-template-columns:15rem minmax(0,1fr)}
.drevo nav{position:sticky;top:0;height:100vh;overflow-y:auto;box-sizing:border-box;padding:1.5rem 1rem;
background:var(--back);border-right:1px solid var(--line);font-size:.85rem}
.drevo nav a{display:block;padding:.2rem .5rem;color:var(--soft);text-decoration:none;border-radius:.3rem;
overflow-wrap:anywhere}
.drevo nav a:hover{color:var(--ink);background:var(--line)}
.drevo main{max-width:62rem;padding:2rem 2.5rem 6rem;box-sizing:border-box}
.drevo h1{font-size:1.9rem;line-height:1.2;font-weight:650;margin:0 0 .6rem;overflow-wrap:anywhere}
.drevo h1::first-letter{text-transform:uppercase}
.drevo h1 small{display:block;font-size:1.05rem;font-weight:400;color:var(--soft)}
.drevo h2{font-size:1.05rem;font-weight:600;margin:2.2rem 0 .5rem;padding-bottom:.25rem;color:var(--mark);
border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.drevo i{color:var(--soft);font-weight:400;font-size:.85em}
.drevo .counts{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}
.drevo .counts div{border:1px solid var(--line);border-radius:.5rem;padding:.5rem .9rem;background:var(--back)}
.drevo .counts b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums;line-height:1.2}
.drevo .counts span,.drevo details{font-size:.85rem;color:var(--soft)}
.drevo section{content-visibility:auto;contain-intrinsic-size:auto 40rem}
.drevo .wide{overflow-x:auto;overflow-y:hidden}
.drevo table{border-collapse:collapse}
.drevo td,.drevo th{padding:.16rem .7rem .16rem 0;text-align:left;vertical-align:baseline}
.drevo th{font-size:.85rem;color:var(--soft);font-weight:500}
.drevo .eq td:first-child{text-align:right;padding-left:.4rem;white-space:nowrap;min-width:4.2rem}
.drevo .eq td:nth-child(2){white-space:nowrap}
.drevo .eq tr:hover{background:var(--back)}
.drevo .same td:first-child{text-align:left}
.drevo .n{font-variant-numeric:tabular-nums;text-align:right}
.drevo math{font-family:"Drevo Math","STIX Two Math","Latin Modern Math","Cambria Math",math;font-size:1.08em}
.drevo .tabs{display:flex;gap:.4rem;margin:.6rem 0}
.drevo button{font:inherit;font-size:.85rem;padding:.25rem .9rem;border:1px solid var(--line);border-radius:.4rem;
background:var(--back);color:var(--ink);cursor:pointer}
.drevo button.on{border-color:var(--mark);color:var(--mark)}
.drevo .copy{margin-left:auto}
.drevo pre{max-height:34rem;overflow:auto;background:var(--back);border:1px solid var(--line);border-radius:.5rem;
padding:1rem;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media(max-width:50rem){body.drevo{display:block}.drevo nav{position:static;height:auto;max-height:12rem}
.drevo main{padding:1.2rem}}
@media print{.drevo nav,.drevo #code{display:none}
body.drevo{display:block}.drevo section{content-visibility:visible}}
"""

HTML_SCRIPT = """
const tabs=[...document.querySelectorAll('button[data-tab]')];
const blocks=[...document.querySelectorAll('pre[data-tab]')];
const show=name=>{for(const b of blocks)b.hidden=b.dataset.tab!==name;
for(const t of tabs)t.classList.toggle('on',t.dataset.tab===name)};
for(const t of tabs)t.onclick=()=>show(t.dataset.tab);
const copy=document.querySelector('.copy');
copy.onclick=async()=>{const block=blocks.find(b=>!b.hidden);
try{await navigator.clipboard.writeText(block.textContent)}
catch{const r=document.createRange();r.selectNodeContents(block);getSelection().removeAllRanges();
getSelection().addRange(r);document.execCommand('copy')}
copy.textContent='Copied';setTimeout(()=>copy.textContent='Copy',1500)};
show(tabs[0].dataset.tab);
"""
