graph():
    %x : [#users=3] = placeholder[target=x]
    %y : [#users=2] = placeholder[target=y]
    %add : [#users=1] = call_function[target=torch.add](args = (%x,), kwargs = {other: %y, alpha: 2})
    %stack : [#users=1] = call_function[target=torch.stack](args = ((%x, %y),), kwargs = {dim: -1})
    %sum_1 : [#users=1] = call_method[target=sum](args = (%stack, -1), kwargs = {})
    %cat : [#users=1] = call_function[target=torch.cat](args = ([%add, %sum_1],), kwargs = {dim: 0})
    %permute : [#users=1] = call_method[target=permute](args = (%cat, 1, 0), kwargs = {})
    %sum_2 : [#users=1] = call_method[target=sum](args = (%permute,), kwargs = {dim: (0, 1), keepdim: True})
    %wrapped : [#users=1] = call_function[target=fx_syntax.wrapped](args = (%sum_2, {k: [%sum_2, {j: (%x,)}], e: {}, n: [None, (), []]}), kwargs = {flags: (True, [False])})
    %pad : [#users=1] = call_function[target=torch.nn.functional.pad](args = (%wrapped, [1, 1]), kwargs = {mode: constant, value: None})
    return pad
