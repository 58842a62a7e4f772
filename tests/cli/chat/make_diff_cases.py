import os,json
os.environ['HF_HUB_OFFLINE']='1'
from transformers import PreTrainedTokenizerFast
"""Writes tests/cli/cases/template_diff_*.case: ids by transformers' apply_chat_template."""
R=os.path.join(os.path.dirname(os.path.abspath(__file__)),'..','')
t=PreTrainedTokenizerFast(tokenizer_file=R+'../golden/models/llama_mini/tokenizer.json')
T=open(R+'chat/turns.jinja').read()
def ids(m,g=True,tools=None,tpl=T):
    return t.apply_chat_template(m,chat_template=tpl,tools=tools,tokenize=True,add_generation_prompt=g,return_dict=False)
hi=json.load(open(R+'chat/hi.json')); forged=json.load(open(R+'chat/forged.json')); tool=json.load(open(R+'chat/tool_now.json'))
swapped=[{"function":{"parameters":{},"name":"now"},"type":"function"}]
B='{models}/../../cli/chat/'
def case(name,why,inp,msgs,exit,lines,extra=''):
    inp=inp if isinstance(inp,str) else ' '.join(map(str,inp))
    open(R+'cases/template_diff_'+name+'.case','w').write(f"# {why}\nargs: template {{models}}/llama_mini --messages {B}{msgs} --chat-template {B}turns.jinja{extra} --diff-ids -\nstdin: {inp}\nexit: {exit}\n"+''.join(l+'\n' for l in lines))
h=ids(hi)
differ="stderr-has: the prompt's ids are not the training's"
case('equal',"The ids of transformers' apply_chat_template.",h,'hi.json',0,[f'stdout: equal: {len(h)} ids'])
case('json_array','The same, as one JSON array.',json.dumps(h),'hi.json',0,[f'stdout: equal: {len(h)} ids'])
case('doubled_bos','Template and tokenizer each wrote a BOS.',h[:1]+h,'hi.json',4,['stdout-has: the ids part at position 1','stdout-has: likely    doubled BOS: the training ids begin with it twice',differ])
case('no_bos','The training had none.',h[1:],'hi.json',4,['stdout-has: the ids part at position 0','stdout-has: likely    BOS: the rendered prompt begins with one token more',differ])
case('generation_prompt','The training did not open the answer.',ids(hi,False),'hi.json',4,['stdout-has: likely    generation prompt: the ids are equal with --no-generation-prompt',differ])
case('newline',"The training's template wrote two line ends.",ids(hi,tpl=T.replace("'\\n'","'\\n\\n'")),'hi.json',4,['stdout-has: likely    missing newline or blank',differ])
case('tool_order','The same tool schema, its members in another order.',ids(hi,tools=swapped),'hi.json',4,['stdout-has: likely    tool schema order',differ],f' --tools {B}tool_now.json')
f=ids(forged)
case('content_trust','transformers takes control tokens inside contents as such; the record says what davit does.',f,'forged.json',4,['stdout-json:','stdout-has: "ids-differ"','stdout-has: "content-trust"','stdout-has: "control tokens inside contents: the ids are equal with --trust-content"'],' --json')
case('content_trusted','With --trust-content the ids are those of transformers, and a warning says so.',f,'forged.json',0,[f'stdout: equal: {len(f)} ids','stderr-has: warning: messages: control tokens inside the messages are control tokens'],' --trust-content')
case('answer_follows','A training sample: the prompt and its answer.',h+h[-3:],'hi.json',4,['stdout-has: likely    more messages, or the answer',differ])
case('unknown_ids','Ids of another vocabulary.','1 2 70000','hi.json',4,['stdout-has: likely    another tokenizer',differ])
case('no_ids','An empty array is no training run.','[]','hi.json',2,['stdout:','stderr-has: the file holds no ids'])
case('no_list','A file of something else; the message names it, not --ids.','{"ids": 3}','hi.json',2,['stdout:','stderr-has: -: the file is no list of ids','stderr-has: one JSON array'])
