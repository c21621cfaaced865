graph():
    %x : [#users=1] = placeholder[target=x]
    %to : [#users=2] = call_method[target=to](args = (%x, torch.float16), kwargs = {memory_format: torch.channels_last})
    %zeros_like : [#users=1] = call_function[target=torch.zeros_like](args = (%to,), kwargs = {dtype: torch.int64, device: cpu, layout: torch.strided})
    %to_1 : [#users=1] = call_method[target=to](args = (%to, cuda:0), kwargs = {})
    %type_1 : [#users=1] = call_method[target=type](args = (%to_1, torch.complex64), kwargs = {})
    %to_2 : [#users=1] = call_method[target=to](args = (%zeros_like, cuda:1, torch.bool), kwargs = {})
    return (type_1, to_2)
