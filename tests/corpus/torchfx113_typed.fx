graph():
    %x : typing.List[torch.Tensor] [#users=2] = placeholder[target=x]
    %table : typing.Dict[str, torch.Tensor] [#users=1] = placeholder[target=table]
    %getitem : [#users=1] = call_function[target=operator.getitem](args = (%x, 0), kwargs = {})
    %getitem_1 : [#users=1] = call_function[target=operator.getitem](args = (%table, a), kwargs = {})
    %getattr_1 : [#users=1] = call_function[target=builtins.getattr](args = (%getitem_1, shape), kwargs = {})
    %getitem_2 : [#users=1] = call_function[target=operator.getitem](args = (%getattr_1, -1), kwargs = {})
    %getattr_2 : [#users=1] = call_function[target=builtins.getattr](args = (%getitem, T), kwargs = {})
    %add : [#users=3] = call_function[target=operator.add](args = (%getattr_2, %getitem_2), kwargs = {})
    %sum_1 : [#users=1] = call_method[target=sum](args = (%add,), kwargs = {})
    %getattr_3 : [#users=1] = call_function[target=builtins.getattr](args = (%add, grad_fn), kwargs = {})
    return (add, {'sum': sum_1, 'all': [add, x], 'n': getattr_3, 'nothing': {}})
