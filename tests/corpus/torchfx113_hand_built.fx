graph():
    %x : torch.Tensor [#users=6] = placeholder[target=x]
    %_rest : [#users=0] = placeholder[target=*rest]
    %_named : [#users=0] = placeholder[target=**named]
    %block_weight : [#users=3] = get_attr[target=block.weight]
    %block_0 : torch.Tensor [#users=2] = call_module[target=block.0](args = (%x,), kwargs = {input: %block_weight})
    %print_1 : [#users=0] = call_function[target=builtins.print](args = (%block_0, unused), kwargs = {})
    %setitem : [#users=0] = call_function[target=operator.setitem](args = (%x, (0, slice(None, None, None)), 1.0), kwargs = {})
    %iadd : [#users=0] = call_function[target=operator.iadd](args = (%x, (1,)), kwargs = {})
    %add_tensor : typing.Optional[torch.Tensor] [#users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (%block_0, %block_weight), kwargs = {alpha: -1})
    %sum_dim_int_list : [#users=0] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%x, [0, -1]), kwargs = {keepdim: True})
    %type_1 : [#users=0] = call_method[target=type](args = (%x,), kwargs = {})
    return [3, 'text', slice(x, None, 2), {'k': (block_weight,)}]
